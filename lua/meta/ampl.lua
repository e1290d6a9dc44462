---@meta
-- generated from the op table by scripts/gen-meta: do not edit

---@alias ampl.dtype "f32"|"f16"|"bf16"|"f64"|"i64"|"i32"|"u8"|"bool"

---A handle of a tensor.  Everything that counts, counts from 1.
---@class ampl.Tensor
---@field shape integer[] a fresh list
---@field dtype ampl.dtype
---@field device string
---@field grad ampl.Tensor?
---@field requires_grad boolean
---@field ndim integer
---@field is_leaf boolean
---@operator add(ampl.Tensor|number): ampl.Tensor
---@operator sub(ampl.Tensor|number): ampl.Tensor
---@operator mul(ampl.Tensor|number): ampl.Tensor
---@operator div(ampl.Tensor|number): ampl.Tensor
---@operator idiv(ampl.Tensor|number): ampl.Tensor
---@operator mod(ampl.Tensor|number): ampl.Tensor
---@operator pow(ampl.Tensor|number): ampl.Tensor
---@operator unm: ampl.Tensor
---@operator len: integer
local Tensor = {}

---Adds the gradients of x to the leaves it came from.
---@param grad? ampl.Tensor
---@param options? table
function Tensor:backward(grad, options) end

---x in bf16.
---@return ampl.Tensor
function Tensor:bfloat16() end

---So many views of a dimension, all but the last equal.
---@param chunks integer
---@param dim? integer
---@return ampl.Tensor[]
function Tensor:chunk(chunks, dim) end

---x on the CPU.
---@return ampl.Tensor
function Tensor:cpu() end

---x on the first CUDA device.
---@return ampl.Tensor
function Tensor:cuda() end

---The address of the first element.
---@return integer
function Tensor:data_ptr() end

---x without its graph, on the same memory.
---@return ampl.Tensor
function Tensor:detach() end

---The number of dimensions.
---@return integer
function Tensor:dim() end

---x in f64.
---@return ampl.Tensor
function Tensor:double() end

---x in f32.
---@return ampl.Tensor
function Tensor:float() end

---Drops this handle; using it afterwards is an error.
function Tensor:free() end

---x in f16.
---@return ampl.Tensor
function Tensor:half() end

---Whether the elements stand row by row without gaps.
---@return boolean
function Tensor:is_contiguous() end

---The one element.
---@return number|boolean
function Tensor:item() end

---x, which now outlives the scope it was made in.
---@return ampl.Tensor
function Tensor:keep() end

---The number of elements.
---@return integer
function Tensor:numel() end

---fn sees, and may replace, the gradient.
---@param fn fun(grad: ampl.Tensor): ampl.Tensor?
---@return table
function Tensor:register_hook(fn) end

---Makes x a leaf that collects a gradient.
---@param on? boolean
---@return ampl.Tensor
function Tensor:requires_grad_(on) end

---Keeps the gradient of x although it is no leaf.
function Tensor:retain_grad() end

---The shape, or one size of it.
---@param dim? integer
---@return integer|integer[]
function Tensor:size(dim) end

---Parts of a dimension.
---@param split_size_or_sections integer|integer[]
---@param dim? integer
---@return ampl.Tensor[]
function Tensor:split(split_size_or_sections, dim) end

---The strides in elements, or one of them.
---@param dim? integer
---@return integer|integer[]
function Tensor:stride(dim) end

---x in another dtype or on another device.
---@param target ampl.dtype|string|table
---@return ampl.Tensor
function Tensor:to(target) end

---The elements, row by row, as bytes.
---@return string
function Tensor:tobytes() end

---The elements as nested lists.
---@return table|number
function Tensor:totable() end

---The views of one position of a dimension each.
---@param dim? integer
---@return ampl.Tensor[]
function Tensor:unbind(dim) end

---The ops as functions.
---@class ampl.ops
local ops = {}

---@class ampl : ampl.ops
---@class ampl.nn.functional : ampl.ops

---The size of x; its gradient at 0 is 0.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.abs(x, options) end

---The size of x; its gradient at 0 is 0.
---@param options? table
---@return ampl.Tensor
function Tensor:abs(options) end

---The size of x; its gradient at 0 is 0. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:abs_(options) end

---The angle in [0, pi] whose cosine is x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.acos(x, options) end

---The angle in [0, pi] whose cosine is x.
---@param options? table
---@return ampl.Tensor
function Tensor:acos(options) end

---The angle in [0, pi] whose cosine is x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:acos_(options) end

---The mean of each of output_size windows that share out the line.
---@param x ampl.Tensor|number
---@param output_size integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.adaptive_avg_pool1d(x, output_size, options) end

---The mean of each of output_size windows that share out the line.
---@param output_size integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:adaptive_avg_pool1d(output_size, options) end

---The mean of each of output_size windows that share out the image.
---@param x ampl.Tensor|number
---@param output_size integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.adaptive_avg_pool2d(x, output_size, options) end

---The mean of each of output_size windows that share out the image.
---@param output_size integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:adaptive_avg_pool2d(output_size, options) end

---The largest value of each of output_size windows that share out the image.
---@param x ampl.Tensor|number
---@param output_size integer|integer[]
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.adaptive_max_pool2d(x, output_size, return_indices, options) end

---The largest value of each of output_size windows that share out the image.
---@param output_size integer|integer[]
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:adaptive_max_pool2d(output_size, return_indices, options) end

---x + alpha * y
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.add(x, y, alpha, options) end

---x + alpha * y
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:add(y, alpha, options) end

---x + alpha * y Written into x.
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:add_(y, alpha, options) end

---x + value * tensor1 / tensor2
---@param x ampl.Tensor|number
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function ops.addcdiv(x, tensor1, tensor2, value, options) end

---x + value * tensor1 / tensor2
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function Tensor:addcdiv(tensor1, tensor2, value, options) end

---x + value * tensor1 / tensor2 Written into x.
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function Tensor:addcdiv_(tensor1, tensor2, value, options) end

---x + value * tensor1 * tensor2
---@param x ampl.Tensor|number
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function ops.addcmul(x, tensor1, tensor2, value, options) end

---x + value * tensor1 * tensor2
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function Tensor:addcmul(tensor1, tensor2, value, options) end

---x + value * tensor1 * tensor2 Written into x.
---@param tensor1 ampl.Tensor|number
---@param tensor2 ampl.Tensor|number
---@param value? number
---@param options? table
---@return ampl.Tensor
function Tensor:addcmul_(tensor1, tensor2, value, options) end

---beta * x + alpha * the product of two matrices.
---@param x ampl.Tensor|number
---@param mat1 ampl.Tensor|number
---@param mat2 ampl.Tensor|number
---@param beta? number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.addmm(x, mat1, mat2, beta, alpha, options) end

---beta * x + alpha * the product of two matrices.
---@param mat1 ampl.Tensor|number
---@param mat2 ampl.Tensor|number
---@param beta? number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:addmm(mat1, mat2, beta, alpha, options) end

---Whether all values over `dim` are true (not 0).
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.all(x, dim, keepdim, options) end

---Whether all values over `dim` are true (not 0).
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:all(dim, keepdim, options) end

---The largest value over `dim`; NaN where there is one.  Equal ones share the gradient.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.amax(x, dim, keepdim, options) end

---The largest value over `dim`; NaN where there is one.  Equal ones share the gradient.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:amax(dim, keepdim, options) end

---The smallest value over `dim`; NaN where there is one.  Equal ones share the gradient.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.amin(x, dim, keepdim, options) end

---The smallest value over `dim`; NaN where there is one.  Equal ones share the gradient.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:amin(dim, keepdim, options) end

---Whether any value over `dim` is true (not 0).
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.any(x, dim, keepdim, options) end

---Whether any value over `dim` is true (not 0).
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:any(dim, keepdim, options) end

---start, start + step ... below end; arange(end) starts at 0.
---@param start ampl.Tensor|number
---@param end_? ampl.Tensor
---@param step? ampl.Tensor
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.arange(start, end_, step, dtype, device, options) end

---start, start + step ... below end; arange(end) starts at 0.
---@param end_? ampl.Tensor
---@param step? ampl.Tensor
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:arange(end_, step, dtype, device, options) end

---Where the largest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the largest.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.argmax(x, dim, keepdim, options) end

---Where the largest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the largest.
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:argmax(dim, keepdim, options) end

---Where the smallest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the smallest.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.argmin(x, dim, keepdim, options) end

---Where the smallest value stands, the first of equal ones: along `dim`, or in x as one row.  NaN is the smallest.
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:argmin(dim, keepdim, options) end

---Where the values of the sorted x stood, along `dim`.
---@param x ampl.Tensor|number
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@param options? table
---@return ampl.Tensor
function ops.argsort(x, dim, descending, stable, options) end

---Where the values of the sorted x stood, along `dim`.
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:argsort(dim, descending, stable, options) end

---The angle in [-pi/2, pi/2] whose sine is x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.asin(x, options) end

---The angle in [-pi/2, pi/2] whose sine is x.
---@param options? table
---@return ampl.Tensor
function Tensor:asin(options) end

---The angle in [-pi/2, pi/2] whose sine is x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:asin_(options) end

---The angle in (-pi/2, pi/2) whose tangent is x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.atan(x, options) end

---The angle in (-pi/2, pi/2) whose tangent is x.
---@param options? table
---@return ampl.Tensor
function Tensor:atan(options) end

---The angle in (-pi/2, pi/2) whose tangent is x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:atan_(options) end

---The angle of the point (y, x), in (-pi, pi].
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.atan2(x, y, options) end

---The angle of the point (y, x), in (-pi, pi].
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:atan2(y, options) end

---The angle of the point (y, x), in (-pi, pi]. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:atan2_(y, options) end

---The mean of each window.
---@param x ampl.Tensor|number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param options? table
---@return ampl.Tensor
function ops.avg_pool1d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, options) end

---The mean of each window.
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:avg_pool1d(kernel_size, stride, padding, ceil_mode, count_include_pad, options) end

---The mean of each window.
---@param x ampl.Tensor|number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@param options? table
---@return ampl.Tensor
function ops.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, options) end

---The mean of each window.
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param ceil_mode? boolean
---@param count_include_pad? boolean
---@param divisor_override? integer
---@param options? table
---@return ampl.Tensor
function Tensor:avg_pool2d(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, options) end

---beta * x + alpha * the products of two batches of matrices.
---@param x ampl.Tensor|number
---@param batch1 ampl.Tensor|number
---@param batch2 ampl.Tensor|number
---@param beta? number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.baddbmm(x, batch1, batch2, beta, alpha, options) end

---beta * x + alpha * the products of two batches of matrices.
---@param batch1 ampl.Tensor|number
---@param batch2 ampl.Tensor|number
---@param beta? number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:baddbmm(batch1, batch2, beta, alpha, options) end

---(x - mean) / sqrt(var + eps) * weight + bias for every channel (dimension 2).  In training mean and variance are those of the batch, and the running ones move towards them by `momentum`; else the running ones are used.  x may be 16-bit while the others are f32.
---@param x ampl.Tensor|number
---@param running_mean? ampl.Tensor
---@param running_var? ampl.Tensor
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param training? boolean
---@param momentum? number
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps, options) end

---(x - mean) / sqrt(var + eps) * weight + bias for every channel (dimension 2).  In training mean and variance are those of the batch, and the running ones move towards them by `momentum`; else the running ones are used.  x may be 16-bit while the others are f32.
---@param running_mean? ampl.Tensor
---@param running_var? ampl.Tensor
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param training? boolean
---@param momentum? number
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:batch_norm(running_mean, running_var, weight, bias, training, momentum, eps, options) end

---1 with the probability x, else 0.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.bernoulli(x, options) end

---1 with the probability x, else 0.
---@param options? table
---@return ampl.Tensor
function Tensor:bernoulli(options) end

----weight (target log(x) + (1 - target) log(1 - x)); x is a probability, the logarithms end at -100.  binary_cross_entropy_with_logits is exact where this one is not.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.binary_cross_entropy(x, target, weight, reduction, options) end

----weight (target log(x) + (1 - target) log(1 - x)); x is a probability, the logarithms end at -100.  binary_cross_entropy_with_logits is exact where this one is not.
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:binary_cross_entropy(target, weight, reduction, options) end

---binary_cross_entropy of sigmoid(x), exact for every x; pos_weight scales the positive targets' term.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param pos_weight? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function ops.binary_cross_entropy_with_logits(x, target, weight, reduction, pos_weight, options) end

---binary_cross_entropy of sigmoid(x), exact for every x; pos_weight scales the positive targets' term.
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param pos_weight? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function Tensor:binary_cross_entropy_with_logits(target, weight, reduction, pos_weight, options) end

---How often each of 1, 2, 3 ... (in C: 0, 1, 2 ...) occurs in x, or the sum of its weights, up to the largest value or minlength.
---@param x ampl.Tensor|number
---@param weights? ampl.Tensor
---@param minlength? integer
---@param options? table
---@return ampl.Tensor
function ops.bincount(x, weights, minlength, options) end

---How often each of 1, 2, 3 ... (in C: 0, 1, 2 ...) occurs in x, or the sum of its weights, up to the largest value or minlength.
---@param weights? ampl.Tensor
---@param minlength? integer
---@param options? table
---@return ampl.Tensor
function Tensor:bincount(weights, minlength, options) end

---The products of two batches of matrices.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.bmm(x, other, options) end

---The products of two batches of matrices.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:bmm(other, options) end

---Tensors joined along dimension `dim`; all other sizes must agree.
---@param tensors ampl.Tensor[]
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function ops.cat(tensors, dim, options) end

---The smallest integer not below x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.ceil(x, options) end

---The smallest integer not below x.
---@param options? table
---@return ampl.Tensor
function Tensor:ceil(options) end

---The smallest integer not below x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:ceil_(options) end

---x where it is positive, else alpha * (exp(x / alpha) - 1).
---@param x ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.celu(x, alpha, options) end

---x where it is positive, else alpha * (exp(x / alpha) - 1).
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:celu(alpha, options) end

---x where it is positive, else alpha * (exp(x / alpha) - 1). Written into x.
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:celu_(alpha, options) end

---x brought into [min, max]: numbers, or tensors that broadcast with x.
---@param x ampl.Tensor|number
---@param min? ampl.Tensor
---@param max? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function ops.clamp(x, min, max, options) end

---x brought into [min, max]: numbers, or tensors that broadcast with x.
---@param min? ampl.Tensor
---@param max? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function Tensor:clamp(min, max, options) end

---x brought into [min, max]: numbers, or tensors that broadcast with x. Written into x.
---@param min? ampl.Tensor
---@param max? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function Tensor:clamp_(min, max, options) end

---A copy of x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.clone(x, options) end

---A copy of x.
---@param options? table
---@return ampl.Tensor
function Tensor:clone(options) end

---Convolution of lines (n, c, length) with filters (k, c/groups, size).
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function ops.conv1d(x, weight, bias, stride, padding, dilation, groups, options) end

---Convolution of lines (n, c, length) with filters (k, c/groups, size).
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function Tensor:conv1d(weight, bias, stride, padding, dilation, groups, options) end

---Convolution of images (n, c, h, w) with filters (k, c/groups, r, s).
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function ops.conv2d(x, weight, bias, stride, padding, dilation, groups, options) end

---Convolution of images (n, c, h, w) with filters (k, c/groups, r, s).
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function Tensor:conv2d(weight, bias, stride, padding, dilation, groups, options) end

---Convolution of volumes (n, c, d, h, w) with filters (k, c/groups, t, r, s).
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function ops.conv3d(x, weight, bias, stride, padding, dilation, groups, options) end

---Convolution of volumes (n, c, d, h, w) with filters (k, c/groups, t, r, s).
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]|"valid"|"same"
---@param dilation? integer|integer[]
---@param groups? integer
---@param options? table
---@return ampl.Tensor
function Tensor:conv3d(weight, bias, stride, padding, dilation, groups, options) end

---Transposed convolution of lines (n, c, length) with filters (c, k/groups, size).
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.conv_transpose1d(x, weight, bias, stride, padding, output_padding, groups, dilation, options) end

---Transposed convolution of lines (n, c, length) with filters (c, k/groups, size).
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:conv_transpose1d(weight, bias, stride, padding, output_padding, groups, dilation, options) end

---Transposed convolution of images (n, c, h, w) with filters (c, k/groups, r, s).
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.conv_transpose2d(x, weight, bias, stride, padding, output_padding, groups, dilation, options) end

---Transposed convolution of images (n, c, h, w) with filters (c, k/groups, r, s).
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param stride? integer|integer[]
---@param padding? integer|integer[]
---@param output_padding? integer|integer[]
---@param groups? integer
---@param dilation? integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:conv_transpose2d(weight, bias, stride, padding, output_padding, groups, dilation, options) end

---copy_ writes src, broadcast and cast, into x.
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:copy(src, options) end

---copy_ writes src, broadcast and cast, into x. Written into x.
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:copy_(src, options) end

---The cosine; x in radians.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.cos(x, options) end

---The cosine; x in radians.
---@param options? table
---@return ampl.Tensor
function Tensor:cos(options) end

---The cosine; x in radians. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:cos_(options) end

---The hyperbolic cosine.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.cosh(x, options) end

---The hyperbolic cosine.
---@param options? table
---@return ampl.Tensor
function Tensor:cosh(options) end

---The hyperbolic cosine. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:cosh_(options) end

---1 - cosine of x1 and x2 where target is 1, max(0, cosine - margin) where it is -1.
---@param x1 ampl.Tensor|number
---@param x2 ampl.Tensor|number
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function ops.cosine_embedding_loss(x1, x2, target, margin, reduction, options) end

---1 - cosine of x1 and x2 where target is 1, max(0, cosine - margin) where it is -1.
---@param x2 ampl.Tensor|number
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function Tensor:cosine_embedding_loss(x2, target, margin, reduction, options) end

---The cosine of the angle between x1 and x2 along `dim` of what they broadcast to; norms count as at least eps.
---@param x1 ampl.Tensor|number
---@param x2 ampl.Tensor|number
---@param dim? integer
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.cosine_similarity(x1, x2, dim, eps, options) end

---The cosine of the angle between x1 and x2 along `dim` of what they broadcast to; norms count as at least eps.
---@param x2 ampl.Tensor|number
---@param dim? integer
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:cosine_similarity(x2, dim, eps, options) end

---How many values over `dim` are not 0.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.count_nonzero(x, dim, options) end

---How many values over `dim` are not 0.
---@param dim? integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:count_nonzero(dim, options) end

----log(softmax(x)[label]), classes in dimension 2 of x (1 of a vector); or, with a target of x's shape, the cross-entropy of those probabilities.  A mean by labels is divided by the sum of their weights; rows whose label is ignore_index do not count.
---@param x ampl.Tensor|number scores, not probabilities
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param ignore_index? integer
---@param reduction? "none"|"mean"|"sum" what is made of the rows' losses
---@param label_smoothing? number
---@param dtype? ampl.dtype of the loss: that of x by default, f32 under autocast
---@param options? table
---@return ampl.Tensor
function ops.cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing, dtype, options) end

----log(softmax(x)[label]), classes in dimension 2 of x (1 of a vector); or, with a target of x's shape, the cross-entropy of those probabilities.  A mean by labels is divided by the sum of their weights; rows whose label is ignore_index do not count.
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param ignore_index? integer
---@param reduction? "none"|"mean"|"sum" what is made of the rows' losses
---@param label_smoothing? number
---@param dtype? ampl.dtype of the loss: that of x by default, f32 under autocast
---@param options? table
---@return ampl.Tensor
function Tensor:cross_entropy(target, weight, ignore_index, reduction, label_smoothing, dtype, options) end

---Running products along `dim`.
---@param x ampl.Tensor|number
---@param dim integer
---@param dtype? ampl.dtype of the products; integers are multiplied as i64
---@param options? table
---@return ampl.Tensor
function ops.cumprod(x, dim, dtype, options) end

---Running products along `dim`.
---@param dim integer
---@param dtype? ampl.dtype of the products; integers are multiplied as i64
---@param options? table
---@return ampl.Tensor
function Tensor:cumprod(dim, dtype, options) end

---Running sums along `dim`.
---@param x ampl.Tensor|number
---@param dim integer
---@param dtype? ampl.dtype of the sums; integers are summed as i64
---@param options? table
---@return ampl.Tensor
function ops.cumsum(x, dim, dtype, options) end

---Running sums along `dim`.
---@param dim integer
---@param dtype? ampl.dtype of the sums; integers are summed as i64
---@param options? table
---@return ampl.Tensor
function Tensor:cumsum(dim, dtype, options) end

---A diagonal of a matrix, as a vector; of a vector, the matrix with that diagonal and zeros.
---@param x ampl.Tensor|number
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function ops.diag(x, diagonal, options) end

---A diagonal of a matrix, as a vector; of a vector, the matrix with that diagonal and zeros.
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function Tensor:diag(diagonal, options) end

---x / y; with a rounding mode, the integer towards 0 or below.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param rounding_mode? "none"|"trunc"|"floor"
---@param options? table
---@return ampl.Tensor
function ops.div(x, y, rounding_mode, options) end

---x / y; with a rounding mode, the integer towards 0 or below.
---@param y ampl.Tensor|number
---@param rounding_mode? "none"|"trunc"|"floor"
---@param options? table
---@return ampl.Tensor
function Tensor:div(y, rounding_mode, options) end

---x / y; with a rounding mode, the integer towards 0 or below. Written into x.
---@param y ampl.Tensor|number
---@param rounding_mode? "none"|"trunc"|"floor"
---@param options? table
---@return ampl.Tensor
function Tensor:div_(y, rounding_mode, options) end

---The sum of the products of two vectors.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.dot(x, other, options) end

---The sum of the products of two vectors.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:dot(other, options) end

---x with each element set to 0 with probability p and the others divided by 1 - p.
---@param x ampl.Tensor|number
---@param p? number
---@param training? boolean false: x as it is
---@param options? table
---@return ampl.Tensor
function ops.dropout(x, p, training, options) end

---x with each element set to 0 with probability p and the others divided by 1 - p.
---@param p? number
---@param training? boolean false: x as it is
---@param options? table
---@return ampl.Tensor
function Tensor:dropout(p, training, options) end

---x with each element set to 0 with probability p and the others divided by 1 - p. Written into x.
---@param p? number
---@param training? boolean false: x as it is
---@param options? table
---@return ampl.Tensor
function Tensor:dropout_(p, training, options) end

---x where it is positive, else alpha * (exp(x) - 1).
---@param x ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.elu(x, alpha, options) end

---x where it is positive, else alpha * (exp(x) - 1).
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:elu(alpha, options) end

---x where it is positive, else alpha * (exp(x) - 1). Written into x.
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:elu_(alpha, options) end

---The rows of `weight` at the positions in `input`.  Row padding_idx gets no gradient; with scale_grad_by_freq a row's gradient is divided by how often it was used.
---@param input ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param padding_idx? integer
---@param scale_grad_by_freq? boolean
---@param options? table
---@return ampl.Tensor
function ops.embedding(input, weight, padding_idx, scale_grad_by_freq, options) end

---The rows of `weight` at the positions in `input`.  Row padding_idx gets no gradient; with scale_grad_by_freq a row's gradient is divided by how often it was used.
---@param weight ampl.Tensor|number
---@param padding_idx? integer
---@param scale_grad_by_freq? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:embedding(weight, padding_idx, scale_grad_by_freq, options) end

---A tensor whose values are whatever memory holds.
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.empty(size, dtype, device, options) end

---A tensor of whatever memory holds, in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.empty_like(x, dtype, device, options) end

---A tensor of whatever memory holds, in x's shape and, unless told otherwise, dtype and device.
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:empty_like(dtype, device, options) end

---Whether x equals y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.eq(x, y, options) end

---Whether x equals y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:eq(y, options) end

---The error function.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.erf(x, options) end

---The error function.
---@param options? table
---@return ampl.Tensor
function Tensor:erf(options) end

---The error function. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:erf_(options) end

---The inverse of erf: +-inf at +-1, NaN beyond.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.erfinv(x, options) end

---The inverse of erf: +-inf at +-1, NaN beyond.
---@param options? table
---@return ampl.Tensor
function Tensor:erfinv(options) end

---The inverse of erf: +-inf at +-1, NaN beyond. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:erfinv_(options) end

---e to the power x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.exp(x, options) end

---e to the power x.
---@param options? table
---@return ampl.Tensor
function Tensor:exp(options) end

---e to the power x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:exp_(options) end

---x with dimensions of size 1, and new ones in front, repeated to `size`; -1 keeps a size.  A view: nothing is copied.
---@param x ampl.Tensor|number
---@param size integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.expand(x, size, options) end

---x with dimensions of size 1, and new ones in front, repeated to `size`; -1 keeps a size.  A view: nothing is copied.
---@param size integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:expand(size, options) end

---exp(x) - 1, exact near 0.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.expm1(x, options) end

---exp(x) - 1, exact near 0.
---@param options? table
---@return ampl.Tensor
function Tensor:expm1(options) end

---exp(x) - 1, exact near 0. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:expm1_(options) end

---The n x m matrix with ones on its diagonal; m is n where it is not given.
---@param n integer
---@param m? integer
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.eye(n, m, dtype, device, options) end

---fill_ writes one value into every element of x.
---@param value ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:fill(value, options) end

---fill_ writes one value into every element of x. Written into x.
---@param value ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:fill_(value, options) end

---Dimensions start_dim to end_dim made one.  A view where x's strides allow it, else a copy.
---@param x ampl.Tensor|number
---@param start_dim? integer
---@param end_dim? integer
---@param options? table
---@return ampl.Tensor
function ops.flatten(x, start_dim, end_dim, options) end

---Dimensions start_dim to end_dim made one.  A view where x's strides allow it, else a copy.
---@param start_dim? integer
---@param end_dim? integer
---@param options? table
---@return ampl.Tensor
function Tensor:flatten(start_dim, end_dim, options) end

---The positions of dimensions `dims` in reverse order.
---@param x ampl.Tensor|number
---@param dims integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.flip(x, dims, options) end

---The positions of dimensions `dims` in reverse order.
---@param dims integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:flip(dims, options) end

---The largest integer not above x.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.floor(x, options) end

---The largest integer not above x.
---@param options? table
---@return ampl.Tensor
function Tensor:floor(options) end

---The largest integer not above x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:floor_(options) end

---The integer below x / y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.floor_div(x, y, options) end

---The integer below x / y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:floor_div(y, options) end

---The integer below x / y. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:floor_div_(y, options) end

---Patches added up to images of output_size: what F.unfold does, turned around.
---@param x ampl.Tensor|number
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.fold(x, output_size, kernel_size, dilation, padding, stride, options) end

---Patches added up to images of output_size: what F.unfold does, turned around.
---@param output_size integer|integer[]
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:fold(output_size, kernel_size, dilation, padding, stride, options) end

---A tensor of one value.
---@param size integer|integer[]
---@param fill_value ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.full(size, fill_value, dtype, device, options) end

---A tensor of one value, in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param fill_value ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.full_like(x, fill_value, dtype, device, options) end

---A tensor of one value, in x's shape and, unless told otherwise, dtype and device.
---@param fill_value ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:full_like(fill_value, dtype, device, options) end

---The elements of x at the positions in `index` along `dim`: y[i][j] = x[index[i][j]][j] for the first dimension.
---@param x ampl.Tensor|number
---@param dim integer
---@param index ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.gather(x, dim, index, options) end

---The elements of x at the positions in `index` along `dim`: y[i][j] = x[index[i][j]][j] for the first dimension.
---@param dim integer
---@param index ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:gather(dim, index, options) end

---(log(var) + (x - target)^2 / var) / 2, var at least eps; with `full`, log(2 pi) / 2 is added.  var: of x's shape, or with 1 in place of one of the sizes, or one value for each row, or a number.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param var ampl.Tensor|number
---@param full? boolean
---@param eps? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.gaussian_nll_loss(x, target, var, full, eps, reduction, options) end

---(log(var) + (x - target)^2 / var) / 2, var at least eps; with `full`, log(2 pi) / 2 is added.  var: of x's shape, or with 1 in place of one of the sizes, or one value for each row, or a number.
---@param target ampl.Tensor|number
---@param var ampl.Tensor|number
---@param full? boolean
---@param eps? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:gaussian_nll_loss(target, var, full, eps, reduction, options) end

---Whether x is not below y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.ge(x, y, options) end

---Whether x is not below y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:ge(y, options) end

---x times the share of the normal distribution below x.
---@param x ampl.Tensor|number
---@param approximate? "none"|"tanh"
---@param options? table
---@return ampl.Tensor
function ops.gelu(x, approximate, options) end

---x times the share of the normal distribution below x.
---@param approximate? "none"|"tanh"
---@param options? table
---@return ampl.Tensor
function Tensor:gelu(approximate, options) end

---x times the share of the normal distribution below x. Written into x.
---@param approximate? "none"|"tanh"
---@param options? table
---@return ampl.Tensor
function Tensor:gelu_(approximate, options) end

---The first half of x along `dim`, times the sigmoid of the second half.
---@param x ampl.Tensor|number
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function ops.glu(x, dim, options) end

---The first half of x along `dim`, times the sigmoid of the second half.
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function Tensor:glu(dim, options) end

---The image at the positions in `grid`: (x, y) pairs from -1 (left, top) to 1; between pixels by `mode`, beyond the image by padding_mode.
---@param input ampl.Tensor|number
---@param grid ampl.Tensor|number
---@param mode? "bilinear"|"nearest"|"bicubic"
---@param padding_mode? "zeros"|"border"|"reflection"
---@param align_corners? boolean
---@param options? table
---@return ampl.Tensor
function ops.grid_sample(input, grid, mode, padding_mode, align_corners, options) end

---The image at the positions in `grid`: (x, y) pairs from -1 (left, top) to 1; between pixels by `mode`, beyond the image by padding_mode.
---@param grid ampl.Tensor|number
---@param mode? "bilinear"|"nearest"|"bicubic"
---@param padding_mode? "zeros"|"border"|"reflection"
---@param align_corners? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:grid_sample(grid, mode, padding_mode, align_corners, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each of num_groups groups of channels of each sample.
---@param x ampl.Tensor|number
---@param num_groups integer
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.group_norm(x, num_groups, weight, bias, eps, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each of num_groups groups of channels of each sample.
---@param num_groups integer
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:group_norm(num_groups, weight, bias, eps, options) end

---Whether x is above y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.gt(x, y, options) end

---Whether x is above y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:gt(y, options) end

---relu6(x + 3) / 6
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.hardsigmoid(x, options) end

---relu6(x + 3) / 6
---@param options? table
---@return ampl.Tensor
function Tensor:hardsigmoid(options) end

---relu6(x + 3) / 6 Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:hardsigmoid_(options) end

---x * relu6(x + 3) / 6
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.hardswish(x, options) end

---x * relu6(x + 3) / 6
---@param options? table
---@return ampl.Tensor
function Tensor:hardswish(options) end

---x * relu6(x + 3) / 6 Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:hardswish_(options) end

---x brought into [min_val, max_val]; its gradient is 0 at both.
---@param x ampl.Tensor|number
---@param min_val? number
---@param max_val? number
---@param options? table
---@return ampl.Tensor
function ops.hardtanh(x, min_val, max_val, options) end

---x brought into [min_val, max_val]; its gradient is 0 at both.
---@param min_val? number
---@param max_val? number
---@param options? table
---@return ampl.Tensor
function Tensor:hardtanh(min_val, max_val, options) end

---x brought into [min_val, max_val]; its gradient is 0 at both. Written into x.
---@param min_val? number
---@param max_val? number
---@param options? table
---@return ampl.Tensor
function Tensor:hardtanh_(min_val, max_val, options) end

---x where target is 1, max(0, margin - x) where it is -1.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.hinge_embedding_loss(x, target, margin, reduction, options) end

---x where target is 1, max(0, margin - x) where it is -1.
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:hinge_embedding_loss(target, margin, reduction, options) end

---How many values of x lie in each of `bins` equal parts of min to max (0 and 0: of the values there are); values outside are not counted.
---@param x ampl.Tensor|number
---@param bins? integer
---@param min? number
---@param max? number
---@param options? table
---@return ampl.Tensor
function ops.histc(x, bins, min, max, options) end

---How many values of x lie in each of `bins` equal parts of min to max (0 and 0: of the values there are); values outside are not counted.
---@param bins? integer
---@param min? number
---@param max? number
---@param options? table
---@return ampl.Tensor
function Tensor:histc(bins, min, max, options) end

---The mean (or sum, or each) of (x - target)^2 / 2, or, where |x - target| is above delta, of delta (|x - target| - delta / 2).
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param delta? number
---@param options? table
---@return ampl.Tensor
function ops.huber_loss(x, target, reduction, delta, options) end

---The mean (or sum, or each) of (x - target)^2 / 2, or, where |x - target| is above delta, of delta (|x - target| - delta / 2).
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param delta? number
---@param options? table
---@return ampl.Tensor
function Tensor:huber_loss(target, reduction, delta, options) end

---Images cut into patches, which may overlap: (n, c, h, w) to (n, c * kernel size, number of patches).  In Lua this is F.unfold.
---@param x ampl.Tensor|number
---@param kernel_size integer|integer[]
---@param dilation? integer|integer[]
---@param padding? integer|integer[]
---@param stride? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.im2col(x, kernel_size, dilation, padding, stride, options) end

---x at the positions that a list of index tensors and masks picks, one for each of the first dimensions (a mask stands for as many as it has): what x[idx] and x[mask] read.
---@param indices ampl.Tensor[]
---@param options? table
---@return ampl.Tensor
function Tensor:index(indices, options) end

---x with alpha * source added, slice by slice, at the positions in `index` of dimension `dim`.  Sums are in a fixed order.
---@param x ampl.Tensor|number
---@param dim integer
---@param index ampl.Tensor|number
---@param source ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.index_add(x, dim, index, source, alpha, options) end

---x with alpha * source added, slice by slice, at the positions in `index` of dimension `dim`.  Sums are in a fixed order.
---@param dim integer
---@param index ampl.Tensor|number
---@param source ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:index_add(dim, index, source, alpha, options) end

---x with alpha * source added, slice by slice, at the positions in `index` of dimension `dim`.  Sums are in a fixed order. Written into x.
---@param dim integer
---@param index ampl.Tensor|number
---@param source ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:index_add_(dim, index, source, alpha, options) end

---x with `values` (broadcast) at the positions that a list of index tensors and masks picks, as x:index does; added to what is there with `accumulate`, else of several for one place the last one stays.
---@param x ampl.Tensor|number
---@param indices ampl.Tensor[]
---@param values ampl.Tensor|number
---@param accumulate? boolean
---@param options? table
---@return ampl.Tensor
function ops.index_put(x, indices, values, accumulate, options) end

---x with `values` (broadcast) at the positions that a list of index tensors and masks picks, as x:index does; added to what is there with `accumulate`, else of several for one place the last one stays.
---@param indices ampl.Tensor[]
---@param values ampl.Tensor|number
---@param accumulate? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:index_put(indices, values, accumulate, options) end

---x with `values` (broadcast) at the positions that a list of index tensors and masks picks, as x:index does; added to what is there with `accumulate`, else of several for one place the last one stays. Written into x.
---@param indices ampl.Tensor[]
---@param values ampl.Tensor|number
---@param accumulate? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:index_put_(indices, values, accumulate, options) end

---The slices of dimension `dim` at the positions in `index`, in that order.
---@param x ampl.Tensor|number
---@param dim integer
---@param index ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.index_select(x, dim, index, options) end

---The slices of dimension `dim` at the positions in `index`, in that order.
---@param dim integer
---@param index ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:index_select(dim, index, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each channel of each sample, or, without use_input_stats, the running ones.
---@param x ampl.Tensor|number
---@param running_mean? ampl.Tensor
---@param running_var? ampl.Tensor
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param use_input_stats? boolean
---@param momentum? number
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.instance_norm(x, running_mean, running_var, weight, bias, use_input_stats, momentum, eps, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over each channel of each sample, or, without use_input_stats, the running ones.
---@param running_mean? ampl.Tensor
---@param running_var? ampl.Tensor
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param use_input_stats? boolean
---@param momentum? number
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:instance_norm(running_mean, running_var, weight, bias, use_input_stats, momentum, eps, options) end

---Whether x is neither NaN nor infinite.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.isfinite(x, options) end

---Whether x is neither NaN nor infinite.
---@param options? table
---@return ampl.Tensor
function Tensor:isfinite(options) end

---Whether x is inf or -inf.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.isinf(x, options) end

---Whether x is inf or -inf.
---@param options? table
---@return ampl.Tensor
function Tensor:isinf(options) end

---Whether x is not a number.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.isnan(x, options) end

---Whether x is not a number.
---@param options? table
---@return ampl.Tensor
function Tensor:isnan(options) end

---target (log(target) - x), x a logarithm of probabilities, so is target with log_target.  batchmean: the sum divided by the number of samples, which is what the mathematical definition gives.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum"|"batchmean"
---@param log_target? boolean
---@param options? table
---@return ampl.Tensor
function ops.kl_div(x, target, reduction, log_target, options) end

---target (log(target) - x), x a logarithm of probabilities, so is target with log_target.  batchmean: the sum divided by the number of samples, which is what the mathematical definition gives.
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum"|"batchmean"
---@param log_target? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:kl_div(target, reduction, log_target, options) end

---The mean (or sum, or each) of |x - target|.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.l1_loss(x, target, reduction, options) end

---The mean (or sum, or each) of |x - target|.
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:l1_loss(target, reduction, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over the last dimensions, those of normalized_shape.
---@param x ampl.Tensor|number
---@param normalized_shape integer|integer[]
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.layer_norm(x, normalized_shape, weight, bias, eps, options) end

---(x - mean) / sqrt(var + eps) * weight + bias, mean and variance over the last dimensions, those of normalized_shape.
---@param normalized_shape integer|integer[]
---@param weight? ampl.Tensor
---@param bias? ampl.Tensor
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:layer_norm(normalized_shape, weight, bias, eps, options) end

---Whether x is not above y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.le(x, y, options) end

---Whether x is not above y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:le(y, options) end

---x where it is positive, else x * negative_slope.
---@param x ampl.Tensor|number
---@param negative_slope? number
---@param options? table
---@return ampl.Tensor
function ops.leaky_relu(x, negative_slope, options) end

---x where it is positive, else x * negative_slope.
---@param negative_slope? number
---@param options? table
---@return ampl.Tensor
function Tensor:leaky_relu(negative_slope, options) end

---x where it is positive, else x * negative_slope. Written into x.
---@param negative_slope? number
---@param options? table
---@return ampl.Tensor
function Tensor:leaky_relu_(negative_slope, options) end

---start + weight * (end - start)
---@param start ampl.Tensor|number
---@param end_ ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.lerp(start, end_, weight, options) end

---start + weight * (end - start)
---@param end_ ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:lerp(end_, weight, options) end

---start + weight * (end - start) Written into x.
---@param end_ ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:lerp_(end_, weight, options) end

---x times the transposed weight, plus bias: x (..., inputs), weight (outputs, inputs), bias (outputs), or what broadcasts to the result.
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function ops.linear(x, weight, bias, options) end

---x times the transposed weight, plus bias: x (..., inputs), weight (outputs, inputs), bias (outputs), or what broadcasts to the result.
---@param weight ampl.Tensor|number
---@param bias? ampl.Tensor
---@param options? table
---@return ampl.Tensor
function Tensor:linear(weight, bias, options) end

---`steps` numbers at equal distances from start to end, both included.
---@param start number
---@param end_ number
---@param steps integer
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.linspace(start, end_, steps, dtype, device, options) end

---x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta
---@param x ampl.Tensor|number
---@param size integer
---@param alpha? number
---@param beta? number
---@param k? number
---@param options? table
---@return ampl.Tensor
function ops.local_response_norm(x, size, alpha, beta, k, options) end

---x / (k + alpha * mean of x^2 over `size` neighbouring channels)^beta
---@param size integer
---@param alpha? number
---@param beta? number
---@param k? number
---@param options? table
---@return ampl.Tensor
function Tensor:local_response_norm(size, alpha, beta, k, options) end

---The natural logarithm.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.log(x, options) end

---The natural logarithm.
---@param options? table
---@return ampl.Tensor
function Tensor:log(options) end

---The natural logarithm. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:log_(options) end

---The logarithm to base 10.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.log10(x, options) end

---The logarithm to base 10.
---@param options? table
---@return ampl.Tensor
function Tensor:log10(options) end

---The logarithm to base 10. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:log10_(options) end

---log(1 + x), exact near 0.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.log1p(x, options) end

---log(1 + x), exact near 0.
---@param options? table
---@return ampl.Tensor
function Tensor:log1p(options) end

---log(1 + x), exact near 0. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:log1p_(options) end

---The logarithm to base 2.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.log2(x, options) end

---The logarithm to base 2.
---@param options? table
---@return ampl.Tensor
function Tensor:log2(options) end

---The logarithm to base 2. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:log2_(options) end

---The logarithm of softmax, exact also where softmax vanishes.
---@param x ampl.Tensor|number
---@param dim? integer
---@param dtype? ampl.dtype of the result
---@param options? table
---@return ampl.Tensor
function ops.log_softmax(x, dim, dtype, options) end

---The logarithm of softmax, exact also where softmax vanishes.
---@param dim? integer
---@param dtype? ampl.dtype of the result
---@param options? table
---@return ampl.Tensor
function Tensor:log_softmax(dim, dtype, options) end

---Whether both are not 0.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.logical_and(x, y, options) end

---Whether both are not 0.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:logical_and(y, options) end

---Whether x is 0 or false.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.logical_not(x, options) end

---Whether x is 0 or false.
---@param options? table
---@return ampl.Tensor
function Tensor:logical_not(options) end

---Whether one is not 0.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.logical_or(x, y, options) end

---Whether one is not 0.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:logical_or(y, options) end

---Whether exactly one is not 0.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.logical_xor(x, y, options) end

---Whether exactly one is not 0.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:logical_xor(y, options) end

---log(sigmoid(x)), exact on both sides.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.logsigmoid(x, options) end

---log(sigmoid(x)), exact on both sides.
---@param options? table
---@return ampl.Tensor
function Tensor:logsigmoid(options) end

---log(sigmoid(x)), exact on both sides. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:logsigmoid_(options) end

---log(sum of exp(x)) over `dim`, exact also where exp(x) is no float.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.logsumexp(x, dim, keepdim, options) end

---log(sum of exp(x)) over `dim`, exact also where exp(x) is no float.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:logsumexp(dim, keepdim, options) end

---Whether x is below y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.lt(x, y, options) end

---Whether x is below y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:lt(y, options) end

---max(0, margin - target (x1 - x2)), target 1 or -1.
---@param x1 ampl.Tensor|number
---@param x2 ampl.Tensor|number
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.margin_ranking_loss(x1, x2, target, margin, reduction, options) end

---max(0, margin - target (x1 - x2)), target 1 or -1.
---@param x2 ampl.Tensor|number
---@param target ampl.Tensor|number
---@param margin? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:margin_ranking_loss(x2, target, margin, reduction, options) end

---x with `value` wherever the mask is true.
---@param x ampl.Tensor|number
---@param mask ampl.Tensor|number
---@param value ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.masked_fill(x, mask, value, options) end

---x with `value` wherever the mask is true.
---@param mask ampl.Tensor|number
---@param value ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:masked_fill(mask, value, options) end

---x with `value` wherever the mask is true. Written into x.
---@param mask ampl.Tensor|number
---@param value ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:masked_fill_(mask, value, options) end

---The elements of x where the mask is true, as a vector; x and mask broadcast.
---@param x ampl.Tensor|number
---@param mask ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.masked_select(x, mask, options) end

---The elements of x where the mask is true, as a vector; x and mask broadcast.
---@param mask ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:masked_select(mask, options) end

---The matrix product; dimensions before the last two are a batch and broadcast; vectors stand for a row or a column.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.matmul(x, other, options) end

---The matrix product; dimensions before the last two are a batch and broadcast; vectors stand for a row or a column.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:matmul(other, options) end

---The largest value; along `dim` the largest values and their positions, the first of equal ones.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.max(x, dim, keepdim, options) end

---The largest value; along `dim` the largest values and their positions, the first of equal ones.
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:max(dim, keepdim, options) end

---The largest value of each window; with return_indices also its position.
---@param x ampl.Tensor|number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, options) end

---The largest value of each window; with return_indices also its position.
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:max_pool1d(kernel_size, stride, padding, dilation, ceil_mode, return_indices, options) end

---The largest value of each window; with return_indices also its flat position in the plane.
---@param x ampl.Tensor|number
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode, return_indices, options) end

---The largest value of each window; with return_indices also its flat position in the plane.
---@param kernel_size integer|integer[]
---@param stride? integer|integer[] kernel_size where not given
---@param padding? integer|integer[]
---@param dilation? integer|integer[]
---@param ceil_mode? boolean
---@param return_indices? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:max_pool2d(kernel_size, stride, padding, dilation, ceil_mode, return_indices, options) end

---The larger one; NaN where one is NaN.  Equal ones share the gradient.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.maximum(x, y, options) end

---The larger one; NaN where one is NaN.  Equal ones share the gradient.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:maximum(y, options) end

---The larger one; NaN where one is NaN.  Equal ones share the gradient. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:maximum_(y, options) end

---The mean over `dim`: one dimension, several, or, without it, all.  NaN where there are no values.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function ops.mean(x, dim, keepdim, dtype, options) end

---The mean over `dim`: one dimension, several, or, without it, all.  NaN where there are no values.
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function Tensor:mean(dim, keepdim, dtype, options) end

---The value in the middle, the lower one of two; along `dim` the values in the middle and their positions.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.median(x, dim, keepdim, options) end

---The value in the middle, the lower one of two; along `dim` the values in the middle and their positions.
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:median(dim, keepdim, options) end

---The smallest value; along `dim` the smallest values and their positions, the first of equal ones.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.min(x, dim, keepdim, options) end

---The smallest value; along `dim` the smallest values and their positions, the first of equal ones.
---@param dim? integer
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:min(dim, keepdim, options) end

---The smaller one; NaN where one is NaN.  Equal ones share the gradient.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.minimum(x, y, options) end

---The smaller one; NaN where one is NaN.  Equal ones share the gradient.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:minimum(y, options) end

---The smaller one; NaN where one is NaN.  Equal ones share the gradient. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:minimum_(y, options) end

---x * tanh(softplus(x))
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.mish(x, options) end

---x * tanh(softplus(x))
---@param options? table
---@return ampl.Tensor
function Tensor:mish(options) end

---x * tanh(softplus(x)) Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:mish_(options) end

---The product of two matrices.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.mm(x, other, options) end

---The product of two matrices.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:mm(other, options) end

---x with the dimensions `source` moved to the places `destination`; the others keep their order.  A view.
---@param x ampl.Tensor|number
---@param source integer|integer[]
---@param destination integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.movedim(x, source, destination, options) end

---x with the dimensions `source` moved to the places `destination`; the others keep their order.  A view.
---@param source integer|integer[]
---@param destination integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:movedim(source, destination, options) end

---The mean (or sum, or each) of (x - target)^2.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.mse_loss(x, target, reduction, options) end

---The mean (or sum, or each) of (x - target)^2.
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:mse_loss(target, reduction, options) end

---x * y
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.mul(x, y, options) end

---x * y
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:mul(y, options) end

---x * y Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:mul_(y, options) end

---The mean over the other classes of max(0, margin - x[label] + x)^p, times weight[label].
---@param x ampl.Tensor|number
---@param target ampl.Tensor|number
---@param p? integer
---@param margin? number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function ops.multi_margin_loss(x, target, p, margin, weight, reduction, options) end

---The mean over the other classes of max(0, margin - x[label] + x)^p, times weight[label].
---@param target ampl.Tensor|number
---@param p? integer
---@param margin? number
---@param weight? ampl.Tensor
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function Tensor:multi_margin_loss(target, p, margin, weight, reduction, options) end

---num_samples positions, each drawn with a probability in proportion to its weight: of a vector, or of every row of a matrix.
---@param x ampl.Tensor|number
---@param num_samples integer
---@param replacement? boolean
---@param options? table
---@return ampl.Tensor
function ops.multinomial(x, num_samples, replacement, options) end

---num_samples positions, each drawn with a probability in proportion to its weight: of a vector, or of every row of a matrix.
---@param num_samples integer
---@param replacement? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:multinomial(num_samples, replacement, options) end

---A matrix times a vector.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.mv(x, other, options) end

---A matrix times a vector.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:mv(other, options) end

---x with NaN and the infinities replaced by numbers.
---@param x ampl.Tensor|number
---@param nan? number
---@param posinf? number the dtype's largest number by default
---@param neginf? number the dtype's smallest number by default
---@param options? table
---@return ampl.Tensor
function ops.nan_to_num(x, nan, posinf, neginf, options) end

---x with NaN and the infinities replaced by numbers.
---@param nan? number
---@param posinf? number the dtype's largest number by default
---@param neginf? number the dtype's smallest number by default
---@param options? table
---@return ampl.Tensor
function Tensor:nan_to_num(nan, posinf, neginf, options) end

---x with NaN and the infinities replaced by numbers. Written into x.
---@param nan? number
---@param posinf? number the dtype's largest number by default
---@param neginf? number the dtype's smallest number by default
---@param options? table
---@return ampl.Tensor
function Tensor:nan_to_num_(nan, posinf, neginf, options) end

---`length` positions of dimension `dim`, from `start` on.  A view.
---@param x ampl.Tensor|number
---@param dim integer
---@param start integer
---@param length integer
---@param options? table
---@return ampl.Tensor
function ops.narrow(x, dim, start, length, options) end

---`length` positions of dimension `dim`, from `start` on.  A view.
---@param dim integer
---@param start integer
---@param length integer
---@param options? table
---@return ampl.Tensor
function Tensor:narrow(dim, start, length, options) end

---Whether x differs from y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.ne(x, y, options) end

---Whether x differs from y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:ne(y, options) end

----x
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.neg(x, options) end

----x
---@param options? table
---@return ampl.Tensor
function Tensor:neg(options) end

----x Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:neg_(options) end

----weight[label] * x[label], x logarithms of probabilities with classes in dimension 2 (1 of a vector).  A mean is divided by the sum of the weights; rows whose label is ignore_index do not count.
---@param x ampl.Tensor|number
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param ignore_index? integer
---@param reduction? "none"|"mean"|"sum" what is made of the rows' losses
---@param options? table
---@return ampl.Tensor
function ops.nll_loss(x, target, weight, ignore_index, reduction, options) end

----weight[label] * x[label], x logarithms of probabilities with classes in dimension 2 (1 of a vector).  A mean is divided by the sum of the weights; rows whose label is ignore_index do not count.
---@param target ampl.Tensor|number
---@param weight? ampl.Tensor
---@param ignore_index? integer
---@param reduction? "none"|"mean"|"sum" what is made of the rows' losses
---@param options? table
---@return ampl.Tensor
function Tensor:nll_loss(target, weight, ignore_index, reduction, options) end

---The positions of the elements that are not 0: one row each, one column for each dimension, in row-major order.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.nonzero(x, options) end

---The positions of the elements that are not 0: one row each, one column for each dimension, in row-major order.
---@param options? table
---@return ampl.Tensor
function Tensor:nonzero(options) end

---The p-norm over `dim`: (sum of |x|^p)^(1/p), the largest or smallest size for p = inf or -inf, the number of values that are not 0 for p = 0.
---@param x ampl.Tensor|number
---@param p? "fro" a number; "fro" is 2
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function ops.norm(x, p, dim, keepdim, dtype, options) end

---The p-norm over `dim`: (sum of |x|^p)^(1/p), the largest or smallest size for p = inf or -inf, the number of values that are not 0 for p = 0.
---@param p? "fro" a number; "fro" is 2
---@param dim? integer|integer[]
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function Tensor:norm(p, dim, keepdim, dtype, options) end

---x / max(p-norm of x over `dim`, eps)
---@param x ampl.Tensor|number
---@param p? number
---@param dim? integer
---@param eps? number
---@param options? table
---@return ampl.Tensor
function ops.normalize(x, p, dim, eps, options) end

---x / max(p-norm of x over `dim`, eps)
---@param p? number
---@param dim? integer
---@param eps? number
---@param options? table
---@return ampl.Tensor
function Tensor:normalize(p, dim, eps, options) end

---For every class in x a row of num_classes zeros with a 1 at the class; -1: as many as the largest class needs.
---@param x ampl.Tensor|number
---@param num_classes? integer
---@param options? table
---@return ampl.Tensor
function ops.one_hot(x, num_classes, options) end

---For every class in x a row of num_classes zeros with a 1 at the class; -1: as many as the largest class needs.
---@param num_classes? integer
---@param options? table
---@return ampl.Tensor
function Tensor:one_hot(num_classes, options) end

---A tensor of ones.
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.ones(size, dtype, device, options) end

---A tensor of ones, in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.ones_like(x, dtype, device, options) end

---A tensor of ones, in x's shape and, unless told otherwise, dtype and device.
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:ones_like(dtype, device, options) end

---All products of the elements of two vectors.
---@param x ampl.Tensor|number
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.outer(x, other, options) end

---All products of the elements of two vectors.
---@param other ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:outer(other, options) end

---x with a border around its last dimensions: `value` (constant), the mirrored inside (reflect), the edge (replicate), or the other end (circular).  Negative sizes cut off.
---@param x ampl.Tensor|number
---@param pad integer|integer[] pairs (before, behind), the last dimension's first
---@param mode? "constant"|"reflect"|"replicate"|"circular"
---@param value? number
---@param options? table
---@return ampl.Tensor
function ops.pad(x, pad, mode, value, options) end

---x with a border around its last dimensions: `value` (constant), the mirrored inside (reflect), the edge (replicate), or the other end (circular).  Negative sizes cut off.
---@param pad integer|integer[] pairs (before, behind), the last dimension's first
---@param mode? "constant"|"reflect"|"replicate"|"circular"
---@param value? number
---@param options? table
---@return ampl.Tensor
function Tensor:pad(pad, mode, value, options) end

---x with its dimensions in the order `dims`.  A view.
---@param x ampl.Tensor|number
---@param dims integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.permute(x, dims, options) end

---x with its dimensions in the order `dims`.  A view.
---@param dims integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:permute(dims, options) end

---Groups of upscale_factor^2 channels rearranged into an image that is finer by that factor.
---@param x ampl.Tensor|number
---@param upscale_factor integer
---@param options? table
---@return ampl.Tensor
function ops.pixel_shuffle(x, upscale_factor, options) end

---Groups of upscale_factor^2 channels rearranged into an image that is finer by that factor.
---@param upscale_factor integer
---@param options? table
---@return ampl.Tensor
function Tensor:pixel_shuffle(upscale_factor, options) end

---exp(x) - target x, or, without log_input, x - target log(x + eps); with `full` an approximation of log(target!) is added.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param log_input? boolean
---@param full? boolean
---@param eps? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.poisson_nll_loss(x, target, log_input, full, eps, reduction, options) end

---exp(x) - target x, or, without log_input, x - target log(x + eps); with `full` an approximation of log(target!) is added.
---@param target ampl.Tensor|number
---@param log_input? boolean
---@param full? boolean
---@param eps? number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:poisson_nll_loss(target, log_input, full, eps, reduction, options) end

---x to the power y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.pow(x, y, options) end

---x to the power y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:pow(y, options) end

---x to the power y. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:pow_(y, options) end

---x where it is positive, else x times a learnt slope: one for all, or one for each channel.
---@param x ampl.Tensor|number
---@param weight ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.prelu(x, weight, options) end

---x where it is positive, else x times a learnt slope: one for all, or one for each channel.
---@param weight ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:prelu(weight, options) end

---The product over dimension `dim`, or of all values.
---@param x ampl.Tensor|number
---@param dim? integer
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function ops.prod(x, dim, keepdim, dtype, options) end

---The product over dimension `dim`, or of all values.
---@param dim? integer
---@param keepdim? boolean
---@param dtype? ampl.dtype
---@param options? table
---@return ampl.Tensor
function Tensor:prod(dim, keepdim, dtype, options) end

---Numbers evenly spread over [0, 1).
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.rand(size, dtype, device, options) end

---rand in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.rand_like(x, dtype, device, options) end

---rand in x's shape and, unless told otherwise, dtype and device.
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:rand_like(dtype, device, options) end

---Integers evenly spread over low, low + 1 ... high - 1.
---@param low integer
---@param high integer
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.randint(low, high, size, dtype, device, options) end

---Numbers of the normal distribution with mean 0 and variance 1.
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.randn(size, dtype, device, options) end

---randn in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.randn_like(x, dtype, device, options) end

---randn in x's shape and, unless told otherwise, dtype and device.
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:randn_like(dtype, device, options) end

---The positions of n elements in random order.
---@param n integer
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.randperm(n, dtype, device, options) end

---1 / x
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.reciprocal(x, options) end

---1 / x
---@param options? table
---@return ampl.Tensor
function Tensor:reciprocal(options) end

---1 / x Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:reciprocal_(options) end

---max(x, 0); its gradient at 0 is 0.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.relu(x, options) end

---max(x, 0); its gradient at 0 is 0.
---@param options? table
---@return ampl.Tensor
function Tensor:relu(options) end

---max(x, 0); its gradient at 0 is 0. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:relu_(options) end

---x brought into [0, 6].
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.relu6(x, options) end

---x brought into [0, 6].
---@param options? table
---@return ampl.Tensor
function Tensor:relu6(options) end

---x brought into [0, 6]. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:relu6_(options) end

---x - y * floor(x / y): has the sign of y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.remainder(x, y, options) end

---x - y * floor(x / y): has the sign of y.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:remainder(y, options) end

---x - y * floor(x / y): has the sign of y. Written into x.
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:remainder_(y, options) end

---Every position of dimension `dim` (without it: of x as one row) repeated `repeats` times: a number, or one for each position.
---@param x ampl.Tensor|number
---@param repeats ampl.Tensor|number
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function ops.repeat_interleave(x, repeats, dim, options) end

---Every position of dimension `dim` (without it: of x as one row) repeated `repeats` times: a number, or one for each position.
---@param repeats ampl.Tensor|number
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function Tensor:repeat_interleave(repeats, dim, options) end

---Images or rows resampled to `size`.  A scale that is not 0 is used in place of the ratio of sizes.  In Lua this is F.interpolate.
---@param x ampl.Tensor|number
---@param size integer|integer[]
---@param mode? "nearest"|"linear"|"cubic"
---@param align_corners? boolean
---@param scale_0? number
---@param scale_1? number
---@param scale_2? number
---@param options? table
---@return ampl.Tensor
function ops.resample(x, size, mode, align_corners, scale_0, scale_1, scale_2, options) end

---x's elements under another shape; one size may be -1.  A view where x's strides allow it, else a copy.
---@param x ampl.Tensor|number
---@param shape integer|integer[] the new shape
---@param options? table
---@return ampl.Tensor
function ops.reshape(x, shape, options) end

---x's elements under another shape; one size may be -1.  A view where x's strides allow it, else a copy.
---@param shape integer|integer[] the new shape
---@param options? table
---@return ampl.Tensor
function Tensor:reshape(shape, options) end

---x / sqrt(mean of x^2 + eps) * weight, the mean over the last dimensions, those of normalized_shape.
---@param x ampl.Tensor|number
---@param normalized_shape integer|integer[]
---@param weight? ampl.Tensor
---@param eps? number by default the smallest step at 1 of the floats it is computed in: 2^-23, for f64 2^-52
---@param options? table
---@return ampl.Tensor
function ops.rms_norm(x, normalized_shape, weight, eps, options) end

---x / sqrt(mean of x^2 + eps) * weight, the mean over the last dimensions, those of normalized_shape.
---@param normalized_shape integer|integer[]
---@param weight? ampl.Tensor
---@param eps? number by default the smallest step at 1 of the floats it is computed in: 2^-23, for f64 2^-52
---@param options? table
---@return ampl.Tensor
function Tensor:rms_norm(normalized_shape, weight, eps, options) end

---Dimensions `dims` moved on by `shifts` positions, the last ones coming in at the front; without dims, x as one row.
---@param x ampl.Tensor|number
---@param shifts integer|integer[]
---@param dims? integer|integer[] one named twice is moved twice
---@param options? table
---@return ampl.Tensor
function ops.roll(x, shifts, dims, options) end

---Dimensions `dims` moved on by `shifts` positions, the last ones coming in at the front; without dims, x as one row.
---@param shifts integer|integer[]
---@param dims? integer|integer[] one named twice is moved twice
---@param options? table
---@return ampl.Tensor
function Tensor:roll(shifts, dims, options) end

---The nearest integer, halves to the even one.
---@param x ampl.Tensor|number
---@param decimals? integer digits kept behind the point; negative ones count in front of it
---@param options? table
---@return ampl.Tensor
function ops.round(x, decimals, options) end

---The nearest integer, halves to the even one.
---@param decimals? integer digits kept behind the point; negative ones count in front of it
---@param options? table
---@return ampl.Tensor
function Tensor:round(decimals, options) end

---The nearest integer, halves to the even one. Written into x.
---@param decimals? integer digits kept behind the point; negative ones count in front of it
---@param options? table
---@return ampl.Tensor
function Tensor:round_(decimals, options) end

---1 / sqrt(x)
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.rsqrt(x, options) end

---1 / sqrt(x)
---@param options? table
---@return ampl.Tensor
function Tensor:rsqrt(options) end

---1 / sqrt(x) Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:rsqrt_(options) end

---softmax(query key' * scale + mask) value, over heads (..., heads, length, size); the dimensions before length broadcast.  A bool mask is true where to look; a row that may look nowhere gives 0.  scale: 1 / sqrt(size) where not given.
---@param query ampl.Tensor|number
---@param key ampl.Tensor|number
---@param value ampl.Tensor|number
---@param mask? ampl.Tensor
---@param dropout_p? number of the weights
---@param is_causal? boolean position i looks at positions up to i
---@param scale? number
---@param enable_gqa? boolean heads of query share those of key and value in groups
---@param options? table
---@return ampl.Tensor
function ops.scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale, enable_gqa, options) end

---softmax(query key' * scale + mask) value, over heads (..., heads, length, size); the dimensions before length broadcast.  A bool mask is true where to look; a row that may look nowhere gives 0.  scale: 1 / sqrt(size) where not given.
---@param key ampl.Tensor|number
---@param value ampl.Tensor|number
---@param mask? ampl.Tensor
---@param dropout_p? number of the weights
---@param is_causal? boolean position i looks at positions up to i
---@param scale? number
---@param enable_gqa? boolean heads of query share those of key and value in groups
---@param options? table
---@return ampl.Tensor
function Tensor:scaled_dot_product_attention(key, value, mask, dropout_p, is_causal, scale, enable_gqa, options) end

---x with the elements of src (or one number) at the positions in `index` along `dim`; of several for one place, the last one stays.
---@param x ampl.Tensor|number
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.scatter(x, dim, index, src, options) end

---x with the elements of src (or one number) at the positions in `index` along `dim`; of several for one place, the last one stays.
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:scatter(dim, index, src, options) end

---x with the elements of src (or one number) at the positions in `index` along `dim`; of several for one place, the last one stays. Written into x.
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:scatter_(dim, index, src, options) end

---x with the elements of src added at the positions in `index` along `dim`.  Sums are in a fixed order.
---@param x ampl.Tensor|number
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.scatter_add(x, dim, index, src, options) end

---x with the elements of src added at the positions in `index` along `dim`.  Sums are in a fixed order.
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:scatter_add(dim, index, src, options) end

---x with the elements of src added at the positions in `index` along `dim`.  Sums are in a fixed order. Written into x.
---@param dim integer
---@param index ampl.Tensor|number
---@param src ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:scatter_add_(dim, index, src, options) end

---Position `index` of dimension `dim`, without that dimension.  A view.
---@param x ampl.Tensor|number
---@param dim integer
---@param index integer
---@param options? table
---@return ampl.Tensor
function ops.select(x, dim, index, options) end

---Position `index` of dimension `dim`, without that dimension.  A view.
---@param dim integer
---@param index integer
---@param options? table
---@return ampl.Tensor
function Tensor:select(dim, index, options) end

---elu with the scale and alpha that keep mean 0 and variance 1.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.selu(x, options) end

---elu with the scale and alpha that keep mean 0 and variance 1.
---@param options? table
---@return ampl.Tensor
function Tensor:selu(options) end

---elu with the scale and alpha that keep mean 0 and variance 1. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:selu_(options) end

---1 / (1 + exp(-x))
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.sigmoid(x, options) end

---1 / (1 + exp(-x))
---@param options? table
---@return ampl.Tensor
function Tensor:sigmoid(options) end

---1 / (1 + exp(-x)) Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:sigmoid_(options) end

----1, 0 or 1, as x is negative, 0 (or NaN) or positive.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.sign(x, options) end

----1, 0 or 1, as x is negative, 0 (or NaN) or positive.
---@param options? table
---@return ampl.Tensor
function Tensor:sign(options) end

----1, 0 or 1, as x is negative, 0 (or NaN) or positive. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:sign_(options) end

---x * sigmoid(x)
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.silu(x, options) end

---x * sigmoid(x)
---@param options? table
---@return ampl.Tensor
function Tensor:silu(options) end

---x * sigmoid(x) Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:silu_(options) end

---The sine; x in radians.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.sin(x, options) end

---The sine; x in radians.
---@param options? table
---@return ampl.Tensor
function Tensor:sin(options) end

---The sine; x in radians. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:sin_(options) end

---The hyperbolic sine.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.sinh(x, options) end

---The hyperbolic sine.
---@param options? table
---@return ampl.Tensor
function Tensor:sinh(options) end

---The hyperbolic sine. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:sinh_(options) end

---Every step-th position of dimension `dim` from `start` to `stop`, both included; bounds beyond the dimension are cut to it.  A view.  (In C `stop` is the first position that is left out.)
---@param x ampl.Tensor|number
---@param dim? integer
---@param start? integer
---@param stop? integer the last position taken
---@param step? integer
---@param options? table
---@return ampl.Tensor
function ops.slice(x, dim, start, stop, step, options) end

---Every step-th position of dimension `dim` from `start` to `stop`, both included; bounds beyond the dimension are cut to it.  A view.  (In C `stop` is the first position that is left out.)
---@param dim? integer
---@param start? integer
---@param stop? integer the last position taken
---@param step? integer
---@param options? table
---@return ampl.Tensor
function Tensor:slice(dim, start, stop, step, options) end

---The mean (or sum, or each) of |x - target| - beta / 2, or, where |x - target| is below beta, of (x - target)^2 / (2 beta).
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param beta? number
---@param options? table
---@return ampl.Tensor
function ops.smooth_l1_loss(x, target, reduction, beta, options) end

---The mean (or sum, or each) of |x - target| - beta / 2, or, where |x - target| is below beta, of (x - target)^2 / (2 beta).
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param beta? number
---@param options? table
---@return ampl.Tensor
function Tensor:smooth_l1_loss(target, reduction, beta, options) end

---log(1 + exp(-target x)), target 1 or -1.
---@param x ampl.Tensor|number the prediction
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function ops.soft_margin_loss(x, target, reduction, options) end

---log(1 + exp(-target x)), target 1 or -1.
---@param target ampl.Tensor|number
---@param reduction? "none"|"mean"|"sum" what is made of the elements' losses
---@param options? table
---@return ampl.Tensor
function Tensor:soft_margin_loss(target, reduction, options) end

---Rescales x along `dim` so that the entries are positive and sum to 1.
---@param x ampl.Tensor|number
---@param dim? integer
---@param dtype? ampl.dtype of the result
---@param options? table
---@return ampl.Tensor
function ops.softmax(x, dim, dtype, options) end

---Rescales x along `dim` so that the entries are positive and sum to 1.
---@param dim? integer
---@param dtype? ampl.dtype of the result
---@param options? table
---@return ampl.Tensor
function Tensor:softmax(dim, dtype, options) end

---log(1 + exp(beta * x)) / beta
---@param x ampl.Tensor|number
---@param beta? number
---@param threshold? number x itself where x * beta is above this
---@param options? table
---@return ampl.Tensor
function ops.softplus(x, beta, threshold, options) end

---log(1 + exp(beta * x)) / beta
---@param beta? number
---@param threshold? number x itself where x * beta is above this
---@param options? table
---@return ampl.Tensor
function Tensor:softplus(beta, threshold, options) end

---log(1 + exp(beta * x)) / beta Written into x.
---@param beta? number
---@param threshold? number x itself where x * beta is above this
---@param options? table
---@return ampl.Tensor
function Tensor:softplus_(beta, threshold, options) end

---x / (1 + |x|)
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.softsign(x, options) end

---x / (1 + |x|)
---@param options? table
---@return ampl.Tensor
function Tensor:softsign(options) end

---x / (1 + |x|) Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:softsign_(options) end

---The values along `dim` in rising (or falling) order, and where they stood.  Equal values keep their order.
---@param x ampl.Tensor|number
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.sort(x, dim, descending, stable, options) end

---The values along `dim` in rising (or falling) order, and where they stood.  Equal values keep their order.
---@param dim? integer
---@param descending? boolean
---@param stable? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:sort(dim, descending, stable, options) end

---The square root.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.sqrt(x, options) end

---The square root.
---@param options? table
---@return ampl.Tensor
function Tensor:sqrt(options) end

---The square root. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:sqrt_(options) end

---x * x
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.square(x, options) end

---x * x
---@param options? table
---@return ampl.Tensor
function Tensor:square(options) end

---x * x Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:square_(options) end

---Without the dimensions of size 1: all of them, or those of `dim` that have size 1.  A view.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param options? table
---@return ampl.Tensor
function ops.squeeze(x, dim, options) end

---Without the dimensions of size 1: all of them, or those of `dim` that have size 1.  A view.
---@param dim? integer|integer[]
---@param options? table
---@return ampl.Tensor
function Tensor:squeeze(dim, options) end

---Tensors of one shape along a new dimension `dim`.
---@param tensors ampl.Tensor[]
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function ops.stack(tensors, dim, options) end

---The standard deviation over `dim`: the square root of var.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.std(x, dim, correction, keepdim, options) end

---The standard deviation over `dim`: the square root of var.
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:std(dim, correction, keepdim, options) end

---x - alpha * y
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function ops.sub(x, y, alpha, options) end

---x - alpha * y
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:sub(y, alpha, options) end

---x - alpha * y Written into x.
---@param y ampl.Tensor|number
---@param alpha? number
---@param options? table
---@return ampl.Tensor
function Tensor:sub_(y, alpha, options) end

---The sum over `dim`: one dimension, several, or, without it, all.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param keepdim? boolean whether reduced dimensions stay, with size 1
---@param dtype? ampl.dtype of the sum; integers are summed as i64
---@param options? table
---@return ampl.Tensor
function ops.sum(x, dim, keepdim, dtype, options) end

---The sum over `dim`: one dimension, several, or, without it, all.
---@param dim? integer|integer[]
---@param keepdim? boolean whether reduced dimensions stay, with size 1
---@param dtype? ampl.dtype of the sum; integers are summed as i64
---@param options? table
---@return ampl.Tensor
function Tensor:sum(dim, keepdim, dtype, options) end

---The transpose of a matrix; a vector as it is.  A view.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.t(x, options) end

---The transpose of a matrix; a vector as it is.  A view.
---@param options? table
---@return ampl.Tensor
function Tensor:t(options) end

---gather with broadcasting; without `dim`, on x and indices as one row each.  Takes what argsort or argmax with keepdim return.
---@param x ampl.Tensor|number
---@param indices ampl.Tensor|number
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function ops.take_along_dim(x, indices, dim, options) end

---gather with broadcasting; without `dim`, on x and indices as one row each.  Takes what argsort or argmax with keepdim return.
---@param indices ampl.Tensor|number
---@param dim? integer
---@param options? table
---@return ampl.Tensor
function Tensor:take_along_dim(indices, dim, options) end

---The tangent; x in radians.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.tan(x, options) end

---The tangent; x in radians.
---@param options? table
---@return ampl.Tensor
function Tensor:tan(options) end

---The tangent; x in radians. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:tan_(options) end

---The hyperbolic tangent.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.tanh(x, options) end

---The hyperbolic tangent.
---@param options? table
---@return ampl.Tensor
function Tensor:tanh(options) end

---The hyperbolic tangent. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:tanh_(options) end

---x repeated dims[k] times along each dimension, the last numbers for the last dimensions.
---@param x ampl.Tensor|number
---@param dims integer|integer[] how many times, by dimension
---@param options? table
---@return ampl.Tensor
function ops.tile(x, dims, options) end

---x repeated dims[k] times along each dimension, the last numbers for the last dimensions.
---@param dims integer|integer[] how many times, by dimension
---@param options? table
---@return ampl.Tensor
function Tensor:tile(dims, options) end

---The k largest (or smallest) values along `dim`, in order, and where they stand; the first of equal ones.
---@param x ampl.Tensor|number
---@param k integer
---@param dim? integer
---@param largest? boolean
---@param sorted? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function ops.topk(x, k, dim, largest, sorted, options) end

---The k largest (or smallest) values along `dim`, in order, and where they stand; the first of equal ones.
---@param k integer
---@param dim? integer
---@param largest? boolean
---@param sorted? boolean
---@param options? table
---@return ampl.Tensor, ampl.Tensor
function Tensor:topk(k, dim, largest, sorted, options) end

---x with dimensions dim0 and dim1 swapped.  A view.
---@param x ampl.Tensor|number
---@param dim0 integer
---@param dim1 integer
---@param options? table
---@return ampl.Tensor
function ops.transpose(x, dim0, dim1, options) end

---x with dimensions dim0 and dim1 swapped.  A view.
---@param dim0 integer
---@param dim1 integer
---@param options? table
---@return ampl.Tensor
function Tensor:transpose(dim0, dim1, options) end

---The lower triangle of a matrix (the last two dimensions), up to a diagonal: 0 the main one, 1 the one above; 0 elsewhere.
---@param x ampl.Tensor|number
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function ops.tril(x, diagonal, options) end

---The lower triangle of a matrix (the last two dimensions), up to a diagonal: 0 the main one, 1 the one above; 0 elsewhere.
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function Tensor:tril(diagonal, options) end

---The lower triangle of a matrix (the last two dimensions), up to a diagonal: 0 the main one, 1 the one above; 0 elsewhere. Written into x.
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function Tensor:tril_(diagonal, options) end

---max(0, margin + distance to the positive - distance to the negative), p-norms over the last dimension of what they broadcast to; with swap the negative's distance to the positive counts where it is smaller.
---@param anchor ampl.Tensor|number
---@param positive ampl.Tensor|number
---@param negative ampl.Tensor|number
---@param margin? number
---@param p? number
---@param eps? number
---@param swap? boolean
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction, options) end

---max(0, margin + distance to the positive - distance to the negative), p-norms over the last dimension of what they broadcast to; with swap the negative's distance to the positive counts where it is smaller.
---@param positive ampl.Tensor|number
---@param negative ampl.Tensor|number
---@param margin? number
---@param p? number
---@param eps? number
---@param swap? boolean
---@param reduction? "none"|"mean"|"sum" what is made of the samples' losses
---@param options? table
---@return ampl.Tensor
function Tensor:triplet_margin_loss(positive, negative, margin, p, eps, swap, reduction, options) end

---The upper triangle of a matrix (the last two dimensions), from a diagonal on: 0 the main one, 1 the one above; 0 elsewhere.
---@param x ampl.Tensor|number
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function ops.triu(x, diagonal, options) end

---The upper triangle of a matrix (the last two dimensions), from a diagonal on: 0 the main one, 1 the one above; 0 elsewhere.
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function Tensor:triu(diagonal, options) end

---The upper triangle of a matrix (the last two dimensions), from a diagonal on: 0 the main one, 1 the one above; 0 elsewhere. Written into x.
---@param diagonal? integer
---@param options? table
---@return ampl.Tensor
function Tensor:triu_(diagonal, options) end

---x without its fraction.
---@param x ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.trunc(x, options) end

---x without its fraction.
---@param options? table
---@return ampl.Tensor
function Tensor:trunc(options) end

---x without its fraction. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:trunc_(options) end

---Dimension `dim` seen as several, of the given sizes; one size may be -1.  A view.
---@param x ampl.Tensor|number
---@param dim integer
---@param sizes integer|integer[] their product is the size of `dim`
---@param options? table
---@return ampl.Tensor
function ops.unflatten(x, dim, sizes, options) end

---Dimension `dim` seen as several, of the given sizes; one size may be -1.  A view.
---@param dim integer
---@param sizes integer|integer[] their product is the size of `dim`
---@param options? table
---@return ampl.Tensor
function Tensor:unflatten(dim, sizes, options) end

---Windows of `size` positions of `dimension`, one every `step`: the dimension counts the windows, a new last one their elements.  A view.  (F.unfold cuts images into patches.)
---@param dimension integer
---@param size integer
---@param step integer
---@param options? table
---@return ampl.Tensor
function Tensor:unfold(dimension, size, step, options) end

---The different values of x, or of its slices along `dim`, in rising order; with return_inverse, also where each element of x is among them; with return_counts, how often each occurs.
---@param x ampl.Tensor|number
---@param sorted? boolean
---@param return_inverse? boolean
---@param return_counts? boolean
---@param dim? integer
---@param options? table
---@return ampl.Tensor, ampl.Tensor, ampl.Tensor
function ops.unique(x, sorted, return_inverse, return_counts, dim, options) end

---The different values of x, or of its slices along `dim`, in rising order; with return_inverse, also where each element of x is among them; with return_counts, how often each occurs.
---@param sorted? boolean
---@param return_inverse? boolean
---@param return_counts? boolean
---@param dim? integer
---@param options? table
---@return ampl.Tensor, ampl.Tensor, ampl.Tensor
function Tensor:unique(sorted, return_inverse, return_counts, dim, options) end

---x with a dimension of size 1 more, at `dim`.  A view.
---@param x ampl.Tensor|number
---@param dim integer
---@param options? table
---@return ampl.Tensor
function ops.unsqueeze(x, dim, options) end

---x with a dimension of size 1 more, at `dim`.  A view.
---@param dim integer
---@param options? table
---@return ampl.Tensor
function Tensor:unsqueeze(dim, options) end

---The variance over `dim`: squared distances from the mean, their sum divided by n - correction.
---@param x ampl.Tensor|number
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function ops.var(x, dim, correction, keepdim, options) end

---The variance over `dim`: squared distances from the mean, their sum divided by n - correction.
---@param dim? integer|integer[]
---@param correction? number
---@param keepdim? boolean
---@param options? table
---@return ampl.Tensor
function Tensor:var(dim, correction, keepdim, options) end

---x's elements under another shape, sharing its memory; one size may be -1.  Where x's strides do not allow it, an error says so: reshape copies.
---@param x ampl.Tensor|number
---@param size integer|integer[] the new shape
---@param options? table
---@return ampl.Tensor
function ops.view(x, size, options) end

---x's elements under another shape, sharing its memory; one size may be -1.  Where x's strides do not allow it, an error says so: reshape copies.
---@param size integer|integer[] the new shape
---@param options? table
---@return ampl.Tensor
function Tensor:view(size, options) end

---x where the condition is true (or not 0), else y.
---@param condition ampl.Tensor|number
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function ops.where(condition, x, y, options) end

---x where the condition is true (or not 0), else y.
---@param x ampl.Tensor|number
---@param y ampl.Tensor|number
---@param options? table
---@return ampl.Tensor
function Tensor:where(x, y, options) end

---zero_ writes 0 into every element of x.
---@param options? table
---@return ampl.Tensor
function Tensor:zero(options) end

---zero_ writes 0 into every element of x. Written into x.
---@param options? table
---@return ampl.Tensor
function Tensor:zero_(options) end

---A tensor of zeros.
---@param size integer|integer[]
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.zeros(size, dtype, device, options) end

---A tensor of zeros, in x's shape and, unless told otherwise, dtype and device.
---@param x ampl.Tensor|number
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function ops.zeros_like(x, dtype, device, options) end

---A tensor of zeros, in x's shape and, unless told otherwise, dtype and device.
---@param dtype? ampl.dtype
---@param device? string
---@param options? table
---@return ampl.Tensor
function Tensor:zeros_like(dtype, device, options) end

return ops
