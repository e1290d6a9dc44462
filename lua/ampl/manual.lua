-- What is written in C and is no op: methods of tensors, functions of ampl.  For help and for editors.

local manual = {}

---Methods of tensors: {name, parameters, result, doc}.
manual.methods = {
  {"backward", "grad?: ampl.Tensor, options?: table", nil, "Adds the gradients of x to the leaves it came from."},
  {"bfloat16", "", "ampl.Tensor", "x in bf16."},
  {"chunk", "chunks: integer, dim?: integer", "ampl.Tensor[]", "So many views of a dimension, all but the last equal."},
  {"cpu", "", "ampl.Tensor", "x on the CPU."},
  {"cuda", "", "ampl.Tensor", "x on the first CUDA device."},
  {"data_ptr", "", "integer", "The address of the first element."},
  {"detach", "", "ampl.Tensor", "x without its graph, on the same memory."},
  {"dim", "", "integer", "The number of dimensions."},
  {"double", "", "ampl.Tensor", "x in f64."},
  {"float", "", "ampl.Tensor", "x in f32."},
  {"free", "", nil, "Drops this handle; using it afterwards is an error."},
  {"half", "", "ampl.Tensor", "x in f16."},
  {"is_contiguous", "", "boolean", "Whether the elements stand row by row without gaps."},
  {"item", "", "number|boolean", "The one element."},
  {"keep", "", "ampl.Tensor", "x, which now outlives the scope it was made in."},
  {"numel", "", "integer", "The number of elements."},
  {"register_hook", "fn: fun(grad: ampl.Tensor): ampl.Tensor?", "table", "fn sees, and may replace, the gradient."},
  {"requires_grad_", "on?: boolean", "ampl.Tensor", "Makes x a leaf that collects a gradient."},
  {"retain_grad", "", nil, "Keeps the gradient of x although it is no leaf."},
  {"size", "dim?: integer", "integer|integer[]", "The shape, or one size of it."},
  {"split", "split_size_or_sections: integer|integer[], dim?: integer", "ampl.Tensor[]", "Parts of a dimension."},
  {"stride", "dim?: integer", "integer|integer[]", "The strides in elements, or one of them."},
  {"to", "target: ampl.dtype|string|table", "ampl.Tensor", "x in another dtype or on another device."},
  {"tobytes", "", "string", "The elements, row by row, as bytes."},
  {"totable", "", "table|number", "The elements as nested lists."},
  {"unbind", "dim?: integer", "ampl.Tensor[]", "The views of one position of a dimension each."},
}

---Functions of ampl: name -> {parameters, doc}.
manual.functions = {
  tensor = {"values, {dtype, device, requires_grad}",
            "A tensor of a number, a boolean or a nested list.  All integers give i64, any float f32."},
  from_bytes = {"bytes, shape, {dtype, device, requires_grad}", "A tensor of the elements in a string, row by row."},
  grad = {"outputs, inputs, {grad_outputs, retain_graph, create_graph, allow_unused}",
          "The gradients of outputs with regard to inputs, one value for each; nothing is added to x.grad."},
  is_grad_enabled = {"", "Whether ops record a graph."},
  is_inference_mode_enabled = {"", "Whether inference_mode is on."},
  manual_seed = {"seed", "Starts the random stream anew; one seed gives one run."},
  get_rng_state = {"", "Where the random stream stands: for set_rng_state."},
  set_rng_state = {"state", "Puts the random stream where get_rng_state was called."},
  set_num_threads = {"n", "How many threads kernels may use."},
  get_num_threads = {"", "How many threads kernels may use."},
  memory_limit = {"bytes", "The most memory that tensors may take, in bytes; without an argument, what it is."},
  reset_peak_memory = {"", "Sets the peak that memory() tells to what is live now."},
  synchronize = {"", "Waits until the device has done what it was told."},
  on_warning = {"fn", "Warnings go to fn(w), w.code and w.message, instead of to Lua's warn; nil: back to it."},
}

return manual
