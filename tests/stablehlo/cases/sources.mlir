module @weft attributes {mhlo.num_replicas = 8 : i32} {
  func.func public @main(%0: tensor<2xf32> loc("x [a=2]"),
      %1: tensor<2xui32> loc("seed [word=2]"),
      %2: tensor<ui32> loc("step []"))
      -> (tensor<i64>, tensor<i64>, tensor<2xi1>, tensor<2xf32>, tensor<2x2xf32>) {
    %3 = "stablehlo.replica_id"() : () -> tensor<ui32> loc(#loc0)
    %4 = stablehlo.constant dense<4> : tensor<ui32> loc(#loc0)
    %5 = stablehlo.remainder %3, %4 : tensor<ui32> loc(#loc0)
    %6 = stablehlo.convert %5 : (tensor<ui32>) -> tensor<i64> loc(#loc0)
    %7 = stablehlo.constant dense<4> : tensor<ui32> loc(#loc0)
    %8 = stablehlo.remainder %3, %7 : tensor<ui32> loc(#loc0)
    %9 = stablehlo.constant dense<4> : tensor<ui32> loc(#loc0)
    %10 = stablehlo.divide %3, %9 : tensor<ui32> loc(#loc0)
    %11 = stablehlo.constant dense<2> : tensor<ui32> loc(#loc0)
    %12 = stablehlo.multiply %8, %11 : tensor<ui32> loc(#loc0)
    %13 = stablehlo.add %12, %10 : tensor<ui32> loc(#loc0)
    %14 = stablehlo.convert %13 : (tensor<ui32>) -> tensor<i64> loc(#loc0)
    %15 = stablehlo.constant dense<[[1.0, -2.5], [0x7F800000, 3.0]]> : tensor<2x2xf32> loc(#loc1)
    %16 = stablehlo.constant dense<[true, false]> : tensor<2xi1> loc(#loc2)
    return %6, %14, %16, %0, %15 : tensor<i64>, tensor<i64>, tensor<2xi1>, tensor<2xf32>, tensor<2x2xf32>
  }
}
#loc0 = loc(" [] = axis_index")
#loc1 = loc(" [n=2 m=2] = constant")
#loc2 = loc(" [n=2] = constant")
#loc3 = loc("host")
