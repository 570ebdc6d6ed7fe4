module @weft attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3x2x4xbf16> loc("q [beam=3 h=2 d=4]"),
      %1: tensor<3x6x2x4xbf16> loc("k [beam=3 m=6 h=2 d=4]"),
      %2: tensor<3x6x2x4xbf16> loc("v [beam=3 m=6 h=2 d=4]"),
      %3: tensor<3x6xi32> loc("from [beam=3 m=6]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<3x2x4xbf16>) {
    %6 = stablehlo.convert %3 : (tensor<3x6xi32>) -> tensor<3x6xi64> loc(#loc0)
    %7 = stablehlo.constant dense<0> : tensor<3x6xi64> loc(#loc0)
    %8 = stablehlo.constant dense<2> : tensor<3x6xi64> loc(#loc0)
    %9 = stablehlo.clamp %7, %6, %8 : tensor<3x6xi64> loc(#loc0)
    %10 = "stablehlo.gather"(%1, %9) {dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2, 4>, indices_are_sorted = false} : (tensor<3x6x2x4xbf16>, tensor<3x6xi64>) -> tensor<3x6x2x4xbf16> loc(#loc0)
    %11 = "stablehlo.gather"(%2, %9) {dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2, 4>, indices_are_sorted = false} : (tensor<3x6x2x4xbf16>, tensor<3x6xi64>) -> tensor<3x6x2x4xbf16> loc(#loc0)
    %12 = stablehlo.constant dense<0.0> : tensor<3x2x4xbf16> loc(#loc0)
    %13 = stablehlo.constant dense<0.0> : tensor<3x2xf32> loc(#loc0)
    %14 = stablehlo.constant dense<0> : tensor<i32> loc(#loc0)
    %15 = stablehlo.dot_general %0, %10, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3] : (tensor<3x2x4xbf16>, tensor<3x6x2x4xbf16>) -> tensor<3x2x6xf32> loc(#loc0)
    %16 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc0)
    %17 = stablehlo.reduce(%15 init: %16) applies stablehlo.maximum across dimensions = [2] : (tensor<3x2x6xf32>, tensor<f32>) -> tensor<3x2xf32> loc(#loc0)
    %18 = stablehlo.constant dense<0xFF800000> : tensor<3x2xf32> loc(#loc0)
    %19 = stablehlo.compare EQ, %17, %18, FLOAT : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1> loc(#loc0)
    %20 = stablehlo.constant dense<0.0> : tensor<3x2xf32> loc(#loc0)
    %21 = stablehlo.select %19, %20, %17 : tensor<3x2xi1>, tensor<3x2xf32> loc(#loc0)
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<3x2xf32>) -> tensor<3x2x6xf32> loc(#loc0)
    %23 = stablehlo.subtract %15, %22 : tensor<3x2x6xf32> loc(#loc0)
    %24 = stablehlo.exponential %23 : tensor<3x2x6xf32> loc(#loc0)
    %25 = stablehlo.constant dense<0.0> : tensor<f32> loc(#loc0)
    %26 = stablehlo.reduce(%24 init: %25) applies stablehlo.add across dimensions = [2] : (tensor<3x2x6xf32>, tensor<f32>) -> tensor<3x2xf32> loc(#loc0)
    %27 = stablehlo.constant dense<0.0> : tensor<3x2xf32> loc(#loc0)
    %28 = stablehlo.compare EQ, %26, %27, FLOAT : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1> loc(#loc0)
    %29 = stablehlo.constant dense<1.0> : tensor<3x2xf32> loc(#loc0)
    %30 = stablehlo.select %28, %29, %26 : tensor<3x2xi1>, tensor<3x2xf32> loc(#loc0)
    %31 = stablehlo.convert %24 : (tensor<3x2x6xf32>) -> tensor<3x2x6xbf16> loc(#loc0)
    %32 = stablehlo.dot_general %31, %11, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<3x2x6xbf16>, tensor<3x6x2x4xbf16>) -> tensor<3x2x4xf32> loc(#loc0)
    %33 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<3x2xf32>) -> tensor<3x2x4xf32> loc(#loc0)
    %34 = stablehlo.divide %32, %33 : tensor<3x2x4xf32> loc(#loc0)
    %35 = stablehlo.convert %34 : (tensor<3x2x4xf32>) -> tensor<3x2x4xbf16> loc(#loc0)
    return %35 : tensor<3x2x4xbf16>
  }
}
#loc0 = loc(" [beam=3 h=2 d=4],  [beam=3 h=2] = attend")
