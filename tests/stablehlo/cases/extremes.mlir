module @weft attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%0: tensor<8xf32> loc("x [a=8]"),
      %1: tensor<8xbf16> loc("y [a=8]"),
      %2: tensor<8xf64> loc("z [a=8]"),
      %3: tensor<8xi32> loc("n [a=8]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<8xf32>, tensor<4xbf16>, tensor<8xf64>, tensor<8xi32>) {
    %6 = stablehlo.compare NE, %0, %0, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1> loc(#loc0)
    %7 = stablehlo.constant dense<2147483647> : tensor<8xi32> loc(#loc0)
    %8 = "stablehlo.bitcast_convert"(%0) : (tensor<8xf32>) -> tensor<8xi32> loc(#loc0)
    %9 = stablehlo.constant dense<31> : tensor<8xi32> loc(#loc0)
    %10 = stablehlo.shift_right_arithmetic %8, %9 : tensor<8xi32> loc(#loc0)
    %11 = stablehlo.constant dense<2147483647> : tensor<8xi32> loc(#loc0)
    %12 = stablehlo.and %10, %11 : tensor<8xi32> loc(#loc0)
    %13 = stablehlo.xor %8, %12 : tensor<8xi32> loc(#loc0)
    %14 = stablehlo.select %6, %7, %13 : tensor<8xi1>, tensor<8xi32> loc(#loc0)
    %15 = "stablehlo.all_reduce"(%14) ({
    ^bb0(%16: tensor<i32>, %17: tensor<i32>):
      %18 = stablehlo.maximum %16, %17 : tensor<i32> loc(#loc0)
      "stablehlo.return"(%18) : (tensor<i32>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xi32>) -> tensor<8xi32> loc(#loc0)
    %19 = stablehlo.constant dense<31> : tensor<8xi32> loc(#loc0)
    %20 = stablehlo.shift_right_arithmetic %15, %19 : tensor<8xi32> loc(#loc0)
    %21 = stablehlo.constant dense<2147483647> : tensor<8xi32> loc(#loc0)
    %22 = stablehlo.and %20, %21 : tensor<8xi32> loc(#loc0)
    %23 = stablehlo.xor %15, %22 : tensor<8xi32> loc(#loc0)
    %24 = "stablehlo.bitcast_convert"(%23) : (tensor<8xi32>) -> tensor<8xf32> loc(#loc0)
    %25 = stablehlo.convert %1 : (tensor<8xbf16>) -> tensor<8xf32> loc(#loc1)
    %26 = stablehlo.compare NE, %25, %25, FLOAT : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1> loc(#loc1)
    %27 = stablehlo.constant dense<-2147483648> : tensor<8xi32> loc(#loc1)
    %28 = "stablehlo.bitcast_convert"(%25) : (tensor<8xf32>) -> tensor<8xi32> loc(#loc1)
    %29 = stablehlo.constant dense<31> : tensor<8xi32> loc(#loc1)
    %30 = stablehlo.shift_right_arithmetic %28, %29 : tensor<8xi32> loc(#loc1)
    %31 = stablehlo.constant dense<2147483647> : tensor<8xi32> loc(#loc1)
    %32 = stablehlo.and %30, %31 : tensor<8xi32> loc(#loc1)
    %33 = stablehlo.xor %28, %32 : tensor<8xi32> loc(#loc1)
    %34 = stablehlo.select %26, %27, %33 : tensor<8xi1>, tensor<8xi32> loc(#loc1)
    %35 = "stablehlo.reduce_scatter"(%34) ({
    ^bb0(%36: tensor<i32>, %37: tensor<i32>):
      %38 = stablehlo.minimum %36, %37 : tensor<i32> loc(#loc1)
      "stablehlo.return"(%38) : (tensor<i32>) -> ()
    }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xi32>) -> tensor<4xi32> loc(#loc1)
    %39 = stablehlo.constant dense<31> : tensor<4xi32> loc(#loc1)
    %40 = stablehlo.shift_right_arithmetic %35, %39 : tensor<4xi32> loc(#loc1)
    %41 = stablehlo.constant dense<2147483647> : tensor<4xi32> loc(#loc1)
    %42 = stablehlo.and %40, %41 : tensor<4xi32> loc(#loc1)
    %43 = stablehlo.xor %35, %42 : tensor<4xi32> loc(#loc1)
    %44 = "stablehlo.bitcast_convert"(%43) : (tensor<4xi32>) -> tensor<4xf32> loc(#loc1)
    %45 = stablehlo.convert %44 : (tensor<4xf32>) -> tensor<4xbf16> loc(#loc1)
    %46 = stablehlo.compare NE, %2, %2, FLOAT : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xi1> loc(#loc0)
    %47 = stablehlo.constant dense<9223372036854775807> : tensor<8xi64> loc(#loc0)
    %48 = "stablehlo.bitcast_convert"(%2) : (tensor<8xf64>) -> tensor<8xi64> loc(#loc0)
    %49 = stablehlo.constant dense<63> : tensor<8xi64> loc(#loc0)
    %50 = stablehlo.shift_right_arithmetic %48, %49 : tensor<8xi64> loc(#loc0)
    %51 = stablehlo.constant dense<9223372036854775807> : tensor<8xi64> loc(#loc0)
    %52 = stablehlo.and %50, %51 : tensor<8xi64> loc(#loc0)
    %53 = stablehlo.xor %48, %52 : tensor<8xi64> loc(#loc0)
    %54 = stablehlo.select %46, %47, %53 : tensor<8xi1>, tensor<8xi64> loc(#loc0)
    %55 = "stablehlo.all_reduce"(%54) ({
    ^bb0(%56: tensor<i64>, %57: tensor<i64>):
      %58 = stablehlo.maximum %56, %57 : tensor<i64> loc(#loc0)
      "stablehlo.return"(%58) : (tensor<i64>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xi64>) -> tensor<8xi64> loc(#loc0)
    %59 = stablehlo.constant dense<63> : tensor<8xi64> loc(#loc0)
    %60 = stablehlo.shift_right_arithmetic %55, %59 : tensor<8xi64> loc(#loc0)
    %61 = stablehlo.constant dense<9223372036854775807> : tensor<8xi64> loc(#loc0)
    %62 = stablehlo.and %60, %61 : tensor<8xi64> loc(#loc0)
    %63 = stablehlo.xor %55, %62 : tensor<8xi64> loc(#loc0)
    %64 = "stablehlo.bitcast_convert"(%63) : (tensor<8xi64>) -> tensor<8xf64> loc(#loc0)
    %65 = "stablehlo.all_reduce"(%3) ({
    ^bb0(%66: tensor<i32>, %67: tensor<i32>):
      %68 = stablehlo.maximum %66, %67 : tensor<i32> loc(#loc0)
      "stablehlo.return"(%68) : (tensor<i32>) -> ()
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8xi32>) -> tensor<8xi32> loc(#loc0)
    return %24, %45, %64, %65 : tensor<8xf32>, tensor<4xbf16>, tensor<8xf64>, tensor<8xi32>
  }
}
#loc0 = loc(" [a=8] = all_reduce")
#loc1 = loc(" [a=4] = reduce_scatter")
