module @weft attributes {mhlo.num_replicas = 8 : i32} {
  func.func public @main(%0: tensor<8x4xf32> loc("x [a=8 b=4]"),
      %1: tensor<2x4xf32> loc("s [a=2 b=4]"),
      %2: tensor<8xi1> loc("t [a=8]"),
      %3: tensor<8x4xf32> loc("y [a=8 b=4]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<2x4xf32>, tensor<8xi1>) {
    %6:2 = "stablehlo.all_reduce"(%0, %3) ({
    ^bb0(%7: tensor<f32>, %8: tensor<f32>):
      %9 = stablehlo.add %7, %8 : tensor<f32> loc(#loc0)
      "stablehlo.return"(%9) : (tensor<f32>) -> ()
    }) {replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) loc(#loc0)
    %10 = "stablehlo.reduce_scatter"(%0) ({
    ^bb0(%11: tensor<f32>, %12: tensor<f32>):
      %13 = stablehlo.add %11, %12 : tensor<f32> loc(#loc1)
      "stablehlo.return"(%13) : (tensor<f32>) -> ()
    }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>} : (tensor<8x4xf32>) -> tensor<4x4xf32> loc(#loc1)
    %14 = "stablehlo.all_gather"(%1) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>} : (tensor<2x4xf32>) -> tensor<8x4xf32> loc(#loc2)
    %15 = "stablehlo.all_to_all"(%1) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 4 : i64, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>} : (tensor<2x4xf32>) -> tensor<8x1xf32> loc(#loc3)
    %16 = "stablehlo.collective_permute"(%1) {source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [4, 5], [5, 6], [6, 7]]> : tensor<6x2xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#loc4)
    %17 = "stablehlo.all_reduce"(%2) ({
    ^bb0(%18: tensor<i1>, %19: tensor<i1>):
      %20 = stablehlo.or %18, %19 : tensor<i1> loc(#loc5)
      "stablehlo.return"(%20) : (tensor<i1>) -> ()
    }) {replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>} : (tensor<8xi1>) -> tensor<8xi1> loc(#loc5)
    return %6#0, %6#1, %10, %14, %15, %16, %17 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>, tensor<8x1xf32>, tensor<2x4xf32>, tensor<8xi1>
  }
}
#loc0 = loc(" [a=8 b=4],  [a=8 b=4] = all_reduce")
#loc1 = loc(" [a=4 b=4] = reduce_scatter")
#loc2 = loc(" [a=8 b=4] = all_gather")
#loc3 = loc(" [a=8 b=1] = all_to_all")
#loc4 = loc(" [a=2 b=4] = permute")
#loc5 = loc(" [a=8] = all_reduce")
#loc6 = loc("done")
