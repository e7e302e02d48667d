#include "interop/llama_tensors.h"

#include <gtest/gtest.h>

#include <map>

#include "model/build.h"
#include "model/parameter_slices.h"

namespace troupe {
namespace {

v1::ModelSpec Model(bool tied) {
  v1::ModelSpec model;
  model.set_pattern("(AD)x3");
  model.set_hidden_size(24);
  model.set_num_attention_heads(4);
  model.set_num_key_value_heads(2);
  model.set_head_dim(10);
  model.set_intermediate_size(33);
  model.set_vocab_size(41);
  model.set_tie_word_embeddings(tied);
  return model;
}

// Checkpoints and Hugging Face directories contain the same tensors.
TEST(LlamaTensorsTest, AreTheParametersOfTheStageProgram) {
  for (const bool tied : {false, true}) {
    const v1::ModelSpec spec = Model(tied);
    model::BuildOptions options;
    options.model = {.blocks = "ADADAD",
                     .hidden_size = spec.hidden_size(),
                     .num_attention_heads = spec.num_attention_heads(),
                     .num_key_value_heads = spec.num_key_value_heads(),
                     .head_dim = spec.head_dim(),
                     .intermediate_size = spec.intermediate_size(),
                     .vocab_size = spec.vocab_size(),
                     .tie_word_embeddings = tied};
    options.chunks = {
        {.first_block = 0, .block_count = 6, .has_embedding = true, .has_head = true}};
    options.sequence_length = 8;
    const auto program = model::BuildProgram(options);
    ASSERT_TRUE(program.ok()) << program.status();
    std::map<std::string, Extents> expected;
    for (const model::ParameterSlice& slice : model::ParameterSlices(*program)) {
      if (slice.kind == model::StateKind::kWeight) expected[slice.name] = slice.global_shape;
    }
    const auto tensors = LlamaTensors(spec);
    ASSERT_TRUE(tensors.ok()) << tensors.status();
    std::map<std::string, Extents> actual;
    for (const ModelTensor& tensor : *tensors) actual[tensor.name] = tensor.shape;
    EXPECT_EQ(actual.size(), tensors->size());
    EXPECT_EQ(actual, expected);
  }
}

TEST(LlamaTensorsTest, PatternsThatLlamaCannotExpressAreRefused) {
  for (const char* pattern : {"A", "AAD", "DA", "ADD", "(AD)x2A", "AM", ""}) {
    v1::ModelSpec model = Model(false);
    model.set_pattern(pattern);
    EXPECT_EQ(LlamaTensors(model).status().code(), StatusCode::kInvalidArgument) << pattern;
  }
}

TEST(LlamaTensorsTest, SizesWhoseProductsCouldOverflowAreRefused) {
  v1::ModelSpec model = Model(false);
  model.set_hidden_size(int64_t{1} << 40);
  EXPECT_EQ(LlamaTensors(model).status().code(), StatusCode::kInvalidArgument);
  model = Model(false);
  model.set_vocab_size(-1);
  EXPECT_EQ(LlamaTensors(model).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
