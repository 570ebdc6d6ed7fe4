module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<3x4xf32> loc("x [v=3 d=4]"),
      %1: tensor<2x4xi32> loc("ids [b=2 d=4]"),
      %2: tensor<2x5xbf16> loc("dy [b=2 e=5]"),
      %3: tensor<2x3xui32> loc("at [b=2 l=3]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<2x4xf32>, tensor<2x4x3xf32>, tensor<3x5xbf16>) {
    %6 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc0)
    %7 = stablehlo.convert %6 : (tensor<ui32>) -> tensor<i64> loc(#loc0)
    %8 = stablehlo.constant dense<3> : tensor<i64> loc(#loc0)
    %9 = stablehlo.multiply %7, %8 : tensor<i64> loc(#loc0)
    %10 = stablehlo.convert %9 : (tensor<i64>) -> tensor<i32> loc(#loc0)
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<2x4xi32> loc(#loc0)
    %12 = stablehlo.subtract %1, %11 : tensor<2x4xi32> loc(#loc0)
    %13 = stablehlo.constant dense<0> : tensor<2x4xi32> loc(#loc0)
    %14 = stablehlo.constant dense<2> : tensor<2x4xi32> loc(#loc0)
    %15 = stablehlo.compare GE, %12, %13, SIGNED : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1> loc(#loc0)
    %16 = stablehlo.compare LE, %12, %14, SIGNED : (tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi1> loc(#loc0)
    %17 = stablehlo.and %15, %16 : tensor<2x4xi1> loc(#loc0)
    %18 = stablehlo.clamp %13, %12, %14 : tensor<2x4xi32> loc(#loc0)
    %19 = "stablehlo.gather"(%0, %18) {dimension_numbers = #stablehlo.gather<offset_dims = [], collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [1], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>, indices_are_sorted = false} : (tensor<3x4xf32>, tensor<2x4xi32>) -> tensor<2x4xf32> loc(#loc0)
    %20 = stablehlo.constant dense<0.0> : tensor<2x4xf32> loc(#loc0)
    %21 = stablehlo.select %17, %19, %20 : tensor<2x4xi1>, tensor<2x4xf32> loc(#loc0)
    %22 = "stablehlo.all_reduce"(%21) ({
    ^bb0(%23: tensor<f32>, %24: tensor<f32>):
      %25 = stablehlo.add %23, %24 : tensor<f32> loc(#loc1)
      "stablehlo.return"(%25) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc1)
    %26 = "stablehlo.all_gather"(%0) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<3x4xf32>) -> tensor<6x4xf32> loc(#loc2)
    %27 = stablehlo.convert %3 : (tensor<2x3xui32>) -> tensor<2x3xi64> loc(#loc3)
    %28 = stablehlo.constant dense<0> : tensor<2x3xi64> loc(#loc3)
    %29 = stablehlo.constant dense<5> : tensor<2x3xi64> loc(#loc3)
    %30 = stablehlo.compare GE, %27, %28, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1> loc(#loc3)
    %31 = stablehlo.compare LE, %27, %29, SIGNED : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x3xi1> loc(#loc3)
    %32 = stablehlo.and %30, %31 : tensor<2x3xi1> loc(#loc3)
    %33 = stablehlo.clamp %28, %27, %29 : tensor<2x3xi64> loc(#loc3)
    %34 = "stablehlo.gather"(%26, %33) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>, indices_are_sorted = false} : (tensor<6x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32> loc(#loc3)
    %35 = stablehlo.transpose %34, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32> loc(#loc3)
    %36 = stablehlo.constant dense<0.0> : tensor<2x4x3xf32> loc(#loc3)
    %37 = stablehlo.broadcast_in_dim %32, dims = [0, 2] : (tensor<2x3xi1>) -> tensor<2x4x3xi1> loc(#loc3)
    %38 = stablehlo.select %37, %35, %36 : tensor<2x4x3xi1>, tensor<2x4x3xf32> loc(#loc3)
    %39 = stablehlo.convert %3 : (tensor<2x3xui32>) -> tensor<2x3xi64> loc(#loc4)
    %40 = stablehlo.constant dense<3> : tensor<i64> loc(#loc4)
    %41 = stablehlo.multiply %7, %40 : tensor<i64> loc(#loc4)
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<i64>) -> tensor<2x3xi64> loc(#loc4)
    %43 = stablehlo.subtract %39, %42 : tensor<2x3xi64> loc(#loc4)
    %44 = stablehlo.convert %2 : (tensor<2x5xbf16>) -> tensor<2x5xf32> loc(#loc4)
    %45 = stablehlo.broadcast_in_dim %44, dims = [0, 2] : (tensor<2x5xf32>) -> tensor<2x3x5xf32> loc(#loc4)
    %46 = stablehlo.constant dense<0.0> : tensor<3x5xf32> loc(#loc4)
    %47 = "stablehlo.scatter"(%46, %43, %45) ({
    ^bb0(%48: tensor<f32>, %49: tensor<f32>):
      %50 = stablehlo.add %48, %49 : tensor<f32> loc(#loc4)
      "stablehlo.return"(%50) : (tensor<f32>) -> ()
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false} : (tensor<3x5xf32>, tensor<2x3xi64>, tensor<2x3x5xf32>) -> tensor<3x5xf32> loc(#loc4)
    %51 = stablehlo.convert %47 : (tensor<3x5xf32>) -> tensor<3x5xbf16> loc(#loc4)
    return %22, %38, %51 : tensor<2x4xf32>, tensor<2x4x3xf32>, tensor<3x5xbf16>
  }
}
#loc0 = loc(" [b=2 d=4] = gather")
#loc1 = loc(" [b=2 d=4] = all_reduce")
#loc2 = loc(" [v=6 d=4] = all_gather")
#loc3 = loc(" [b=2 d=4 l=3] = gather")
#loc4 = loc(" [v=3 e=5] = scatter_add")
