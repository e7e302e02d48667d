// Tests that the installed cuBLASLt is found and has the functions that we call; this needs no GPU.
#include "kernels/cuda/libraries/cublaslt_functions.h"

#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace troupe::kernels::cuda {
namespace {

// Must be the first test, while nothing is loaded.
TEST(CublasLtFunctions, ReportWhyTheyCannotBeLoaded) {
  EXPECT_EQ(LoadCublasLt("libcublasLt_of_nobody.so").code(), StatusCode::kNotFound);
  const Status other = LoadCublasLt("libm.so.6");
  EXPECT_EQ(other.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(ToString(other), testing::HasSubstr("function cublasLtGetVersion is missing"));
}

TEST(CublasLtFunctions, AreTheInstalledLibrarys) {
  const Status status = LoadCublasLt();
  if (status.code() == StatusCode::kNotFound) GTEST_SKIP() << ToString(status);
  ASSERT_TRUE(status.ok()) << ToString(status);
  EXPECT_GE(cublasLtGetVersion(), size_t{CUBLAS_VERSION});
  EXPECT_STREQ(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED");
  cublasLtMatrixLayout_t layout = nullptr;
  ASSERT_EQ(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, 8, 4, 8), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace troupe::kernels::cuda
