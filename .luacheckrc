std = "lua54"
max_line_length = 120
self = false
exclude_files = {"build*", "lua/meta"}
files["spec"].std = "+busted"
files["examples"].globals = {}
files["lua/ampl/cli/show.lua"].globals = {"_G"}
