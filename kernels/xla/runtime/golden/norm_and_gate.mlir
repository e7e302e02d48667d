// mesh
// values
//   %0 x bf16[dim 2, dim 4] @ R, activation
//   %1 norm f32[dim 4] @ R, activation
//   %2 normed bf16[dim 2, dim 4] @ R, activation
//   %3 rstd f32[dim 2] @ R, activation
//   %4 gate_up_proj bf16[dim 6, dim 4] @ R, activation
//   %5 gate_up bf16[dim 2, dim 6] @ R, activation
//   %6 gated bf16[dim 2, dim 3] @ R, activation
// parameters
// chunk 0
//   forward
//     %2, %3 = rms_norm(%0, %1) {eps 1e-05}  # normed
//     %5 = matmul(%2, %4)  # gate_up
//     %6 = swiglu(%5)  # gated
// rank
module @troupe {
  func.func public @main(%a0: tensor<4xf32>, %a1: tensor<2x4xbf16>, %a2: tensor<6x4xbf16>, %a3: tensor<2x4xbf16> {tf.aliasing_output = 0 : i32}, %a4: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %a5: tensor<2x6xbf16> {tf.aliasing_output = 2 : i32}, %a6: tensor<2x3xbf16> {tf.aliasing_output = 3 : i32}) -> (tensor<2x4xbf16>, tensor<2xf32>, tensor<2x6xbf16>, tensor<2x3xbf16>) {
    %0 = stablehlo.convert %a1 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<2x4xf32>
    %2 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = stablehlo.constant dense<0x3E800000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<2xf32>
    %7 = stablehlo.constant dense<0x3727C5AC> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %9 = stablehlo.add %6, %8 : tensor<2xf32>
    %10 = stablehlo.rsqrt %9 : tensor<2xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
    %12 = stablehlo.multiply %0, %11 : tensor<2x4xf32>
    %13 = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %14 = stablehlo.multiply %12, %13 : tensor<2x4xf32>
    %15 = stablehlo.convert %14 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    %16 = stablehlo.dot_general %15, %a2, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x4xbf16>, tensor<6x4xbf16>) -> tensor<2x6xf32>
    %17 = stablehlo.convert %16 : (tensor<2x6xf32>) -> tensor<2x6xbf16>
    %18 = stablehlo.convert %17 : (tensor<2x6xbf16>) -> tensor<2x6xf32>
    %19 = stablehlo.slice %18 [0:2, 0:3:1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
    %20 = stablehlo.slice %18 [0:2, 3:6:1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
    %21 = stablehlo.logistic %19 : tensor<2x3xf32>
    %22 = stablehlo.multiply %19, %21 : tensor<2x3xf32>
    %23 = stablehlo.multiply %22, %20 : tensor<2x3xf32>
    %24 = stablehlo.convert %23 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    return %15, %10, %17, %24 : tensor<2x4xbf16>, tensor<2xf32>, tensor<2x6xbf16>, tensor<2x3xbf16>
  }
}
