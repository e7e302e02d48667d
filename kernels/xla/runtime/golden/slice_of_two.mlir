//   forward
//     %7 = embedding(%1, %3) {vocab_offset 0}  # embedding.partial
//     %8 = all_reduce(%7) {tensor, purpose tensor}  # embedding.output
//     %24, %25 = rms_norm(%8, %10) {eps 1e-05}  # block0.mlp.normed
//     %26 = copy(%24) {tensor, purpose tensor}  # block0.mlp.copied
//     %27 = matmul(%26, %15)  # block0.mlp.gate_up
//     %28 = swiglu(%27)  # block0.mlp.activated
//     %29 = matmul(%28, %20)  # block0.mlp.projected.partial
//     %30 = all_reduce(%29) {tensor, purpose tensor}  # block0.mlp.projected
//     %31, %45, %46 = add_rms_norm(%8, %30, %35) {eps 1e-05}  # block0.mlp.sum
//     %47 = copy(%45) {tensor, purpose tensor}  # head.copied
//     %48 = matmul(%47, %40)  # head.logits
//     %49, %50 = softmax_stats(%48, %32) {vocab_offset 0}  # head.max
//     %51 = all_reduce(%49) {tensor max, purpose tensor}  # head.global_max
//     %52 = softmax_rescale(%50, %49, %51)  # head.sums.rescaled
//     %53 = all_reduce(%52) {tensor, purpose tensor}  # head.sums.global
//     %44 = cross_entropy(%51, %53, %33)  # loss_totals
//   %a0: tokens
//   %a1: embedding.table
//   %a2: block0.mlp.norm
//   %a3: block0.mlp.gate_up_proj
//   %a4: block0.mlp.down_proj
//   %a5: head.norm
//   %a6: head.table
//   %a7: targets
//   %a8: weights
//   %a9: loss_totals
//   %a10: embedding.partial
//   %a11: block0.mlp.normed
//   %a12: block0.mlp.rstd
//   %a13: block0.mlp.gate_up
//   %a14: block0.mlp.activated
//   %a15: block0.mlp.sum
//   %a16: head.normed
//   %a17: head.rstd
//   %a18: head.logits
//   %a19: head.max
//   %a20: head.global_max
//   %a21: head.sums.rescaled
module @troupe {
  sdy.mesh @ranks = <["r"=2]>
  func.func public @main(%m0: tensor<4xi32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, %m1: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, %m2: tensor<8xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, %m3: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, %m4: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, %m5: tensor<8xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, %m6: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, %m7: tensor<4xi32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, %m8: tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, %m9: tensor<4xf64> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>, tf.aliasing_output = 6 : i32}, %m10: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 0 : i32}, %m11: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 1 : i32}, %m12: tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>, tf.aliasing_output = 2 : i32}, %m13: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 3 : i32}, %m14: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 4 : i32}, %m15: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 5 : i32}, %m16: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 7 : i32}, %m17: tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>, tf.aliasing_output = 8 : i32}, %m18: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 9 : i32}, %m19: tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>, tf.aliasing_output = 10 : i32}, %m20: tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>, tf.aliasing_output = 11 : i32}, %m21: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>, tf.aliasing_output = 12 : i32}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4xf64> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, tensor<4xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}]>}, tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@ranks, [{"r"}, {}]>}) {
    %r:13 = sdy.manual_computation(%m0, %m1, %m2, %m3, %m4, %m5, %m6, %m7, %m8, %m9, %m10, %m11, %m12, %m13, %m14, %m15, %m16, %m17, %m18, %m19, %m20, %m21) in_shardings=[<@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>] out_shardings=[<@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}]>, <@ranks, [{"r"}, {}]>] manual_axes={"r"} (%a0: tensor<2xi32>, %a1: tensor<3x4xf32>, %a2: tensor<4xf32>, %a3: tensor<4x4xf32>, %a4: tensor<4x2xf32>, %a5: tensor<4xf32>, %a6: tensor<3x4xf32>, %a7: tensor<2xi32>, %a8: tensor<2xf32>, %a9: tensor<2xf64>, %a10: tensor<2x4xf32>, %a11: tensor<2x4xf32>, %a12: tensor<2xf32>, %a13: tensor<2x4xf32>, %a14: tensor<2x2xf32>, %a15: tensor<2x4xf32>, %a16: tensor<2x4xf32>, %a17: tensor<2xf32>, %a18: tensor<2x3xf32>, %a19: tensor<2xf32>, %a20: tensor<2xf32>, %a21: tensor<2x2xf32>) {
    %unsigned = stablehlo.partition_id : tensor<ui32>
    %partition = stablehlo.convert %unsigned : (tensor<ui32>) -> tensor<i32>
    %0 = stablehlo.constant dense<[0, 3]> : tensor<2xi32>
    %1 = stablehlo.dynamic_slice %0, %partition, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.reshape %1 : (tensor<1xi32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %4 = stablehlo.subtract %a0, %3 : tensor<2xi32>
    %5 = stablehlo.reshape %4 : (tensor<2xi32>) -> tensor<2x1xi32>
    %6 = "stablehlo.gather"(%a1, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
    %7 = stablehlo.constant dense<3> : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %9 = stablehlo.compare LT, %4, %8, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %10 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %12 = stablehlo.compare GE, %4, %11, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %13 = stablehlo.and %12, %9 : tensor<2xi1>
    %14 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<2xi1>) -> tensor<2x4xi1>
    %16 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %17 = stablehlo.select %15, %6, %16 : tensor<2x4xi1>, tensor<2x4xf32>
    %18 = "stablehlo.all_reduce"(%17) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %19 = stablehlo.multiply %18, %18 : tensor<2x4xf32>
    %20 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %21 = stablehlo.reduce(%19 init: %20) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
    %22 = stablehlo.constant dense<0x3E800000> : tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %24 = stablehlo.multiply %21, %23 : tensor<2xf32>
    %25 = stablehlo.constant dense<0x3727C5AC> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %27 = stablehlo.add %24, %26 : tensor<2xf32>
    %28 = stablehlo.rsqrt %27 : tensor<2xf32>
    %29 = stablehlo.broadcast_in_dim %28, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
    %30 = stablehlo.multiply %18, %29 : tensor<2x4xf32>
    %31 = stablehlo.broadcast_in_dim %a2, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %32 = stablehlo.multiply %30, %31 : tensor<2x4xf32>
    %37 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %38 = stablehlo.dynamic_slice %37, %partition, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %39 = stablehlo.reshape %38 : (tensor<1xi32>) -> tensor<i32>
    %40:1 = "stablehlo.case"(%39) ({
    %33 = stablehlo.dot_general %32, %a3, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    stablehlo.return %33 : tensor<2x4xf32>
    }, {
    %33 = stablehlo.slice %a3 [0:2:1, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %34 = stablehlo.dot_general %32, %33, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
    %35 = stablehlo.constant dense<0x00000000> : tensor<2x2xf32>
    %36 = stablehlo.concatenate %34, %35, dim = 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
    stablehlo.return %36 : tensor<2x4xf32>
    }) : (tensor<i32>) -> (tensor<2x4xf32>)
    %49 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %50 = stablehlo.dynamic_slice %49, %partition, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %51 = stablehlo.reshape %50 : (tensor<1xi32>) -> tensor<i32>
    %52:1 = "stablehlo.case"(%51) ({
    %41 = stablehlo.slice %40#0 [0:2, 0:2:1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %42 = stablehlo.slice %40#0 [0:2, 2:4:1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %43 = stablehlo.logistic %41 : tensor<2x2xf32>
    %44 = stablehlo.multiply %41, %43 : tensor<2x2xf32>
    %45 = stablehlo.multiply %44, %42 : tensor<2x2xf32>
    stablehlo.return %45 : tensor<2x2xf32>
    }, {
    %41 = stablehlo.slice %40#0 [0:2, 0:2:1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
    %42 = stablehlo.slice %41 [0:2, 0:1:1] : (tensor<2x2xf32>) -> tensor<2x1xf32>
    %43 = stablehlo.slice %41 [0:2, 1:2:1] : (tensor<2x2xf32>) -> tensor<2x1xf32>
    %44 = stablehlo.logistic %42 : tensor<2x1xf32>
    %45 = stablehlo.multiply %42, %44 : tensor<2x1xf32>
    %46 = stablehlo.multiply %45, %43 : tensor<2x1xf32>
    %47 = stablehlo.constant dense<0x00000000> : tensor<2x1xf32>
    %48 = stablehlo.concatenate %46, %47, dim = 1 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
    stablehlo.return %48 : tensor<2x2xf32>
    }) : (tensor<i32>) -> (tensor<2x2xf32>)
    %56 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>
    %57 = stablehlo.dynamic_slice %56, %partition, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %58 = stablehlo.reshape %57 : (tensor<1xi32>) -> tensor<i32>
    %59:1 = "stablehlo.case"(%58) ({
    %53 = stablehlo.dot_general %52#0, %a4, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x2xf32>, tensor<4x2xf32>) -> tensor<2x4xf32>
    stablehlo.return %53 : tensor<2x4xf32>
    }, {
    %53 = stablehlo.slice %a4 [0:4, 0:1:1] : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %54 = stablehlo.slice %52#0 [0:2, 0:1:1] : (tensor<2x2xf32>) -> tensor<2x1xf32>
    %55 = stablehlo.dot_general %54, %53, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x1xf32>, tensor<4x1xf32>) -> tensor<2x4xf32>
    stablehlo.return %55 : tensor<2x4xf32>
    }) : (tensor<i32>) -> (tensor<2x4xf32>)
    %60 = "stablehlo.all_reduce"(%59#0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %61 = stablehlo.add %18, %60 : tensor<2x4xf32>
    %62 = stablehlo.multiply %61, %61 : tensor<2x4xf32>
    %63 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %64 = stablehlo.reduce(%62 init: %63) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
    %65 = stablehlo.constant dense<0x3E800000> : tensor<f32>
    %66 = stablehlo.broadcast_in_dim %65, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %67 = stablehlo.multiply %64, %66 : tensor<2xf32>
    %68 = stablehlo.constant dense<0x3727C5AC> : tensor<f32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %70 = stablehlo.add %67, %69 : tensor<2xf32>
    %71 = stablehlo.rsqrt %70 : tensor<2xf32>
    %72 = stablehlo.broadcast_in_dim %71, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
    %73 = stablehlo.multiply %61, %72 : tensor<2x4xf32>
    %74 = stablehlo.broadcast_in_dim %a5, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %75 = stablehlo.multiply %73, %74 : tensor<2x4xf32>
    %76 = stablehlo.dot_general %75, %a6, contracting_dims = [1] x [1], precision = [HIGHEST, HIGHEST] : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
    %77 = stablehlo.constant dense<[0, 3]> : tensor<2xi32>
    %78 = stablehlo.dynamic_slice %77, %partition, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
    %79 = stablehlo.reshape %78 : (tensor<1xi32>) -> tensor<i32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %81 = stablehlo.subtract %a7, %80 : tensor<2xi32>
    %82 = stablehlo.broadcast_in_dim %81, dims = [0] : (tensor<2xi32>) -> tensor<2x3xi32>
    %83 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %84 = stablehlo.compare EQ, %83, %82, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %85 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %86 = stablehlo.bitcast_convert %76 : (tensor<2x3xf32>) -> tensor<2x3xi32>
    %87 = stablehlo.constant dense<31> : tensor<i32>
    %88 = stablehlo.broadcast_in_dim %87, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %89 = stablehlo.shift_right_arithmetic %86, %88 : tensor<2x3xi32>
    %90 = stablehlo.constant dense<2147483647> : tensor<i32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %92 = stablehlo.and %89, %91 : tensor<2x3xi32>
    %93 = stablehlo.xor %86, %92 : tensor<2x3xi32>
    %94 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %95 = stablehlo.reduce(%93 init: %94) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %96 = stablehlo.constant dense<31> : tensor<i32>
    %97 = stablehlo.broadcast_in_dim %96, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %98 = stablehlo.shift_right_arithmetic %95, %97 : tensor<2xi32>
    %99 = stablehlo.constant dense<2147483647> : tensor<i32>
    %100 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %101 = stablehlo.and %98, %100 : tensor<2xi32>
    %102 = stablehlo.xor %95, %101 : tensor<2xi32>
    %103 = stablehlo.bitcast_convert %102 : (tensor<2xi32>) -> tensor<2xf32>
    %104 = stablehlo.broadcast_in_dim %103, dims = [0] : (tensor<2xf32>) -> tensor<2x3xf32>
    %105 = stablehlo.subtract %76, %104 : tensor<2x3xf32>
    %106 = stablehlo.exponential %105 : tensor<2x3xf32>
    %107 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %108 = stablehlo.reduce(%106 init: %107) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %109 = stablehlo.broadcast_in_dim %85, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %110 = stablehlo.select %84, %76, %109 : tensor<2x3xi1>, tensor<2x3xf32>
    %111 = stablehlo.constant dense<0x00000000> : tensor<f32>
    %112 = stablehlo.reduce(%110 init: %111) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %113 = stablehlo.reshape %108 : (tensor<2xf32>) -> tensor<1x2xf32>
    %114 = stablehlo.reshape %112 : (tensor<2xf32>) -> tensor<1x2xf32>
    %115 = stablehlo.concatenate %113, %114, dim = 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
    %116 = "stablehlo.all_reduce"(%103) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.maximum %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}) : (tensor<2xf32>) -> tensor<2xf32>
    %117 = stablehlo.subtract %103, %116 : tensor<2xf32>
    %118 = stablehlo.exponential %117 : tensor<2xf32>
    %119 = stablehlo.slice %115 [1:2:1, 0:2] : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %120 = stablehlo.reshape %119 : (tensor<1x2xf32>) -> tensor<2xf32>
    %121 = stablehlo.slice %115 [0:1:1, 0:2] : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %122 = stablehlo.reshape %121 : (tensor<1x2xf32>) -> tensor<2xf32>
    %123 = stablehlo.multiply %122, %118 : tensor<2xf32>
    %124 = stablehlo.reshape %123 : (tensor<2xf32>) -> tensor<1x2xf32>
    %125 = stablehlo.reshape %120 : (tensor<2xf32>) -> tensor<1x2xf32>
    %126 = stablehlo.concatenate %124, %125, dim = 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
    %127 = "stablehlo.all_reduce"(%126) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, use_global_device_ids}> ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %z = stablehlo.add %x, %y : tensor<f32> stablehlo.return %z : tensor<f32>}) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %128 = stablehlo.convert %a8 : (tensor<2xf32>) -> tensor<2xf64>
    %129 = stablehlo.slice %127 [1:2:1, 0:2] : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %130 = stablehlo.reshape %129 : (tensor<1x2xf32>) -> tensor<2xf32>
    %131 = stablehlo.convert %130 : (tensor<2xf32>) -> tensor<2xf64>
    %132 = stablehlo.convert %116 : (tensor<2xf32>) -> tensor<2xf64>
    %133 = stablehlo.slice %127 [0:1:1, 0:2] : (tensor<2x2xf32>) -> tensor<1x2xf32>
    %134 = stablehlo.reshape %133 : (tensor<1x2xf32>) -> tensor<2xf32>
    %135 = stablehlo.convert %134 : (tensor<2xf32>) -> tensor<2xf64>
    %136 = stablehlo.log %135 : tensor<2xf64>
    %137 = stablehlo.add %136, %132 : tensor<2xf64>
    %138 = stablehlo.subtract %137, %131 : tensor<2xf64>
    %139 = stablehlo.multiply %128, %138 : tensor<2xf64>
    %140 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %141 = stablehlo.reduce(%139 init: %140) applies stablehlo.add across dimensions = [0] : (tensor<2xf64>, tensor<f64>) -> tensor<f64>
    %142 = stablehlo.reshape %141 : (tensor<f64>) -> tensor<1xf64>
    %143 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %144 = stablehlo.reduce(%128 init: %143) applies stablehlo.add across dimensions = [0] : (tensor<2xf64>, tensor<f64>) -> tensor<f64>
    %145 = stablehlo.reshape %144 : (tensor<f64>) -> tensor<1xf64>
    %146 = stablehlo.concatenate %142, %145, dim = 0 : (tensor<1xf64>, tensor<1xf64>) -> tensor<2xf64>
    %147 = stablehlo.add %a9, %146 : tensor<2xf64>
    sdy.return %18, %32, %28, %40#0, %52#0, %61, %147, %75, %71, %76, %103, %116, %127 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x4xf32>, tensor<2xf64>, tensor<2x4xf32>, tensor<2xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>
    } : (tensor<4xi32>, tensor<6x4xf32>, tensor<8xf32>, tensor<8x4xf32>, tensor<8x2xf32>, tensor<8xf32>, tensor<6x4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xf64>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf64>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>)
    return %r#0, %r#1, %r#2, %r#3, %r#4, %r#5, %r#6, %r#7, %r#8, %r#9, %r#10, %r#11, %r#12 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x4xf32>, tensor<4xf64>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x2xf32>
  }
}
