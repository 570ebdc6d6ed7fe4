module @weft attributes {mhlo.num_replicas = 1 : i32} {
  func.func public @main(%0: tensor<3x2x4x16x8xf16> loc("q [a=3 b=2 h=4 l=16 d=8]"),
      %1: tensor<4x3x24x2x8xf16> loc("k [h=4 a=3 m=24 b=2 d=8]"),
      %2: tensor<3x2x4x24x8xf16> loc("v [a=3 b=2 h=4 m=24 e=8]"),
      %3: tensor<3x2x4x16x8xf16> loc("dy [a=3 b=2 h=4 l=16 e=8]"),
      %4: tensor<2xui32> loc("seed [word=2]"),
      %5: tensor<ui32> loc("step []"))
      -> (tensor<3x2x4x16x8xf16>, tensor<3x2x4x16x8xf16>, tensor<4x3x24x2x8xf16>, tensor<3x2x4x24x8xf16>) {
    %6 = stablehlo.reshape %0 : (tensor<3x2x4x16x8xf16>) -> tensor<6x4x16x8xf16> loc(#loc0)
    %7 = stablehlo.transpose %1, dims = [1, 3, 0, 2, 4] : (tensor<4x3x24x2x8xf16>) -> tensor<3x2x4x24x8xf16> loc(#loc0)
    %8 = stablehlo.reshape %7 : (tensor<3x2x4x24x8xf16>) -> tensor<6x4x24x8xf16> loc(#loc0)
    %9 = stablehlo.reshape %2 : (tensor<3x2x4x24x8xf16>) -> tensor<6x4x24x8xf16> loc(#loc0)
    %10:3 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%6, %8, %9) {api_version = 2 : i32, backend_config = "{\"operation_queue_id\": \"0\", \"cudnn_fmha_backend_config\": {\"algorithm\": {\"algo_id\": \"0\", \"math_type\": \"TENSOR_OP_MATH\", \"tuning_knobs\": {\"17\": \"1\", \"24\": \"0\"}, \"is_cudnn_frontend\": true, \"workspace_size\": \"0\"}, \"fmha_scale\": 1, \"intermediate_tensor_shape\": {\"element_type\": \"F16\", \"dimensions\": [\"6\", \"4\", \"16\", \"24\"], \"layout\": {\"minor_to_major\": [\"3\", \"2\", \"1\", \"0\"]}, \"is_dynamic_dimension\": [false, false, false, false]}, \"is_flash_attention\": true, \"mask_type\": \"NO_MASK\", \"bmm1_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": [\"3\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"bmm2_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": [\"2\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"dropout_rate\": 0.0, \"seed\": 42, \"sliding_window_length\": 0, \"max_seg_per_batch\": 1, \"is_paged_attention\": false}}", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<6x4x16x8xf16>, tensor<6x4x24x8xf16>, tensor<6x4x24x8xf16>) -> (tensor<6x4x16x8xf16>, tensor<6x4x16xf32>, tensor<0xui8>) loc(#loc0)
    %11 = stablehlo.reshape %10#0 : (tensor<6x4x16x8xf16>) -> tensor<3x2x4x16x8xf16> loc(#loc0)
    %12 = stablehlo.reshape %10#1 : (tensor<6x4x16xf32>) -> tensor<3x2x4x16xf32> loc(#loc0)
    %13 = stablehlo.reshape %12 : (tensor<3x2x4x16xf32>) -> tensor<6x4x16xf32> loc(#loc1)
    %14 = stablehlo.reshape %0 : (tensor<3x2x4x16x8xf16>) -> tensor<6x4x16x8xf16> loc(#loc1)
    %15 = stablehlo.transpose %1, dims = [1, 3, 0, 2, 4] : (tensor<4x3x24x2x8xf16>) -> tensor<3x2x4x24x8xf16> loc(#loc1)
    %16 = stablehlo.reshape %15 : (tensor<3x2x4x24x8xf16>) -> tensor<6x4x24x8xf16> loc(#loc1)
    %17 = stablehlo.reshape %2 : (tensor<3x2x4x24x8xf16>) -> tensor<6x4x24x8xf16> loc(#loc1)
    %18 = stablehlo.reshape %3 : (tensor<3x2x4x16x8xf16>) -> tensor<6x4x16x8xf16> loc(#loc1)
    %19 = stablehlo.reshape %11 : (tensor<3x2x4x16x8xf16>) -> tensor<6x4x16x8xf16> loc(#loc1)
    %20:4 = stablehlo.custom_call @__cudnn$fmhaSoftmaxBackward(%14, %16, %17, %13, %18, %19) {api_version = 2 : i32, backend_config = "{\"operation_queue_id\": \"0\", \"cudnn_fmha_backend_config\": {\"algorithm\": {\"algo_id\": \"0\", \"math_type\": \"TENSOR_OP_MATH\", \"tuning_knobs\": {\"17\": \"1\", \"24\": \"0\"}, \"is_cudnn_frontend\": true, \"workspace_size\": \"0\"}, \"fmha_scale\": 1, \"intermediate_tensor_shape\": {\"element_type\": \"F16\", \"dimensions\": [\"6\", \"4\", \"16\", \"24\"], \"layout\": {\"minor_to_major\": [\"3\", \"2\", \"1\", \"0\"]}, \"is_dynamic_dimension\": [false, false, false, false]}, \"is_flash_attention\": true, \"mask_type\": \"NO_MASK\", \"bmm1_grad_gemm1_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"2\"], \"rhs_contracting_dimensions\": [\"2\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"bmm1_grad_gemm2_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": [\"2\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"bmm2_grad_gemm1_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"2\"], \"rhs_contracting_dimensions\": [\"2\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"bmm2_grad_gemm2_dot_dimension_numbers\": {\"lhs_contracting_dimensions\": [\"3\"], \"rhs_contracting_dimensions\": [\"3\"], \"lhs_batch_dimensions\": [\"0\", \"1\"], \"rhs_batch_dimensions\": [\"0\", \"1\"]}, \"dropout_rate\": 0.0, \"seed\": 42, \"sliding_window_length\": 0, \"max_seg_per_batch\": 1, \"is_paged_attention\": false}}", operand_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[2, 1, 0]> : tensor<3xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>], result_layouts = [dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[3, 2, 1, 0]> : tensor<4xindex>, dense<[0]> : tensor<1xindex>]} : (tensor<6x4x16x8xf16>, tensor<6x4x24x8xf16>, tensor<6x4x24x8xf16>, tensor<6x4x16xf32>, tensor<6x4x16x8xf16>, tensor<6x4x16x8xf16>) -> (tensor<6x4x16x8xf16>, tensor<6x4x24x8xf16>, tensor<6x4x24x8xf16>, tensor<0xui8>) loc(#loc1)
    %21 = stablehlo.reshape %20#0 : (tensor<6x4x16x8xf16>) -> tensor<3x2x4x16x8xf16> loc(#loc1)
    %22 = stablehlo.reshape %20#1 : (tensor<6x4x24x8xf16>) -> tensor<3x2x4x24x8xf16> loc(#loc1)
    %23 = stablehlo.reshape %20#2 : (tensor<6x4x24x8xf16>) -> tensor<3x2x4x24x8xf16> loc(#loc1)
    %24 = stablehlo.transpose %22, dims = [2, 0, 3, 1, 4] : (tensor<3x2x4x24x8xf16>) -> tensor<4x3x24x2x8xf16> loc(#loc1)
    return %11, %21, %24, %23 : tensor<3x2x4x16x8xf16>, tensor<3x2x4x16x8xf16>, tensor<4x3x24x2x8xf16>, tensor<3x2x4x24x8xf16>
  }
}
#loc0 = loc(" [a=3 b=2 h=4 l=16 e=8],  [a=3 b=2 h=4 l=16] = attend")
#loc1 = loc(" [a=3 b=2 h=4 l=16 d=8],  [h=4 a=3 m=24 b=2 d=8],  [a=3 b=2 h=4 m=24 e=8] = attend_back")
