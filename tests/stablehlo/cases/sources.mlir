module @weft attributes {mhlo.num_replicas = 8 : i32} {
  func.func public @main(%0: tensor<2xf32> loc("x [a=2]"),
      %1: tensor<2xui32> loc("seed [word=2]"),
      %2: tensor<ui32> loc("step []"))
      -> (tensor<i64>, tensor<i64>, tensor<2xi1>, tensor<2xf32>, tensor<2x2xf32>) {
    %3 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc0)
    %4 = stablehlo.convert %3 : (tensor<ui32>) -> tensor<i64> loc(#loc0)
    %5 = stablehlo.constant dense<4> : tensor<i64> loc(#loc0)
    %6 = stablehlo.remainder %4, %5 : tensor<i64> loc(#loc0)
    %7 = stablehlo.constant dense<4> : tensor<i64> loc(#loc0)
    %8 = stablehlo.remainder %4, %7 : tensor<i64> loc(#loc0)
    %9 = stablehlo.constant dense<4> : tensor<i64> loc(#loc0)
    %10 = stablehlo.divide %4, %9 : tensor<i64> loc(#loc0)
    %11 = stablehlo.constant dense<2> : tensor<i64> loc(#loc0)
    %12 = stablehlo.multiply %8, %11 : tensor<i64> loc(#loc0)
    %13 = stablehlo.add %12, %10 : tensor<i64> loc(#loc0)
    %14 = stablehlo.constant dense<[[1.0, -2.5], [0x7F800000, 3.0]]> : tensor<2x2xf32> loc(#loc1)
    %15 = stablehlo.constant dense<[true, false]> : tensor<2xi1> loc(#loc2)
    return %6, %13, %15, %0, %14 : tensor<i64>, tensor<i64>, tensor<2xi1>, tensor<2xf32>, tensor<2x2xf32>
  }
}
#loc0 = loc(" [] = axis_index")
#loc1 = loc(" [n=2 m=2] = constant")
#loc2 = loc(" [n=2] = constant")
#loc3 = loc("host")
