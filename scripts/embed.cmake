# Writes OUT, a C file that holds every Lua file of FILES (paths under ROOT) as a byte array, and the table
# ampl_embedded[] = {module name, bytes, size}.  ampl/nn/init.lua is the module ampl.nn, ampl/nn/Linear.lua ampl.nn.Linear.
# Comments that are no documentation (which is what stands at the top, and what begins with ---) are left empty: line
# numbers in messages stay true, and help reads the rest.
set(arrays "")
set(rows "")
set(n 0)
foreach(file ${FILES})
  file(READ ${ROOT}/${file} text)
  string(REGEX MATCH "^(--[^\n]*\n)+" head "${text}")
  string(LENGTH "${head}" length)
  string(SUBSTRING "${text}" ${length} -1 body)
  string(REGEX REPLACE "\n[ \t]*--[^-\n][^\n]*" "\n" body "\n${body}")
  string(SUBSTRING "${body}" 1 -1 body)
  set(text "${head}${body}")
  string(HEX "${text}" hex)
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "\\.lua$" "" module ${file})
  string(REGEX REPLACE "/init$" "" module ${module})
  string(REPLACE "/" "." module ${module})
  string(APPEND arrays "static const unsigned char lua_${n}[] = {${bytes}0};\n")
  string(APPEND rows "  {\"${module}\", (const char *)lua_${n}, ${size}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "#include <stddef.h>\n${arrays}
const struct { const char *name, *text; size_t size; } ampl_embedded[] = {\n${rows}  {NULL, NULL, 0}};\n")
