#include "interop/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Json Small() {
  return {{"model_type", "llama"},      {"vocab_size", 259},      {"hidden_size", 64},
          {"intermediate_size", 96},    {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2},   {"rms_norm_eps", 1e-6},   {"max_position_embeddings", 128},
          {"tie_word_embeddings", true}};
}

Json Llama3() {
  return {{"rope_type", "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 32}};
}

StatusOr<v1::ModelSpec> Parse(const Json& config) { return ParseHfConfig(config.dump()); }

StatusOr<v1::ModelSpec> With(const char* key, const Json& value) {
  Json config = Small();
  config[key] = value;
  return Parse(config);
}

TEST(HfConfigTest, EveryKeyOfTheShapeIsSet) {
  const auto model = Parse(Small());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->pattern(), "(AD)x2");
  EXPECT_EQ(model->hidden_size(), 64);
  EXPECT_EQ(model->num_attention_heads(), 4);
  EXPECT_EQ(model->num_key_value_heads(), 2);
  EXPECT_EQ(model->head_dim(), 16);
  EXPECT_EQ(model->intermediate_size(), 96);
  EXPECT_EQ(model->vocab_size(), 259);
  EXPECT_TRUE(model->tie_word_embeddings());
  EXPECT_EQ(model->rope_theta(), 10000.0);
  EXPECT_FALSE(model->has_rope_scaling());
  EXPECT_EQ(model->norm_eps(), 1e-6);
  EXPECT_EQ(model->max_position_embeddings(), 128);
}

TEST(HfConfigTest, KeysThatAreLeftOutAreThoseOfTransformers) {
  Json config = Small();
  for (const char* key :
       {"num_key_value_heads", "rms_norm_eps", "max_position_embeddings", "tie_word_embeddings"}) {
    config.erase(key);
  }
  config["head_dim"] = nullptr;
  const auto model = Parse(config);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->num_key_value_heads(), 4);
  EXPECT_EQ(model->head_dim(), 16);
  EXPECT_EQ(model->norm_eps(), 1e-6);
  EXPECT_EQ(model->max_position_embeddings(), 2048);
  EXPECT_FALSE(model->tie_word_embeddings());
}

TEST(HfConfigTest, OlderAndNewerRopeKeysMeanTheSame) {
  Json older = Small(), newer = Small(), older_type = Small(), sibling = Small();
  older["rope_theta"] = 500000.0;
  older["rope_scaling"] = Llama3();
  newer["rope_parameters"] = Llama3();
  newer["rope_parameters"]["rope_theta"] = 500000;
  older_type = older;
  older_type["rope_scaling"].erase("rope_type");
  older_type["rope_scaling"]["type"] = "llama3";
  sibling = older;
  sibling["rope_scaling"].erase("original_max_position_embeddings");
  sibling["original_max_position_embeddings"] = 32;
  for (const Json& config : {older, newer, older_type, sibling}) {
    const auto model = Parse(config);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->rope_theta(), 500000.0);
    EXPECT_EQ(model->rope_scaling().rope_type(), "llama3");
    EXPECT_EQ(model->rope_scaling().factor(), 8.0);
    EXPECT_EQ(model->rope_scaling().low_freq_factor(), 1.0);
    EXPECT_EQ(model->rope_scaling().high_freq_factor(), 4.0);
    EXPECT_EQ(model->rope_scaling().original_max_position_embeddings(), 32);
  }
  const auto plain = With("rope_parameters", {{"rope_type", "default"}, {"rope_theta", 250.0}});
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->rope_theta(), 250.0);
  EXPECT_FALSE(plain->has_rope_scaling());
}

TEST(HfConfigTest, TheOriginalLengthNextToTheScalingReplacesTheOneInIt) {
  for (const char* const name : {"rope_scaling", "rope_parameters"}) {
    Json config = Small();
    config[name] = Llama3();
    config["original_max_position_embeddings"] = 64;
    const auto model = Parse(config);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->rope_scaling().original_max_position_embeddings(), 64) << name;
    config["original_max_position_embeddings"] = nullptr;
    EXPECT_EQ(Parse(config)->rope_scaling().original_max_position_embeddings(), 32) << name;
  }
}

TEST(HfConfigTest, RopeKeysThatContradictEachOtherAreRefused) {
  Json config = Small();
  config["rope_theta"] = 1.0;
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 2.0}};
  EXPECT_THAT(std::string(Message(Parse(config).status())), HasSubstr("rope_theta"));
  config = Small();
  config["rope_scaling"] = Llama3();
  config["rope_parameters"] = {{"rope_type", "default"}};
  EXPECT_THAT(std::string(Message(Parse(config).status())), HasSubstr("rope_scaling"));
}

TEST(HfConfigTest, WhatIsNotBuiltIsRefusedByName) {
  struct Case {
    const char* key;
    Json value;
    const char* words;
  };
  Json partial = Llama3();
  partial["partial_rotary_factor"] = 0.5;
  Json reversed = Llama3();
  reversed["high_freq_factor"] = 0.5;
  Json incomplete = Llama3();
  incomplete.erase("original_max_position_embeddings");
  for (const Case& c : std::initializer_list<Case>{
           {"model_type", "qwen2", "\"qwen2\""},
           {"model_type", nullptr, "model_type"},
           {"hidden_act", "gelu", "\"gelu\""},
           {"attention_bias", true, "attention_bias is true"},
           {"mlp_bias", true, "mlp_bias is true"},
           {"attention_dropout", 0.1, "attention_dropout is 0.1"},
           {"quantization_config", {{"bits", 4}}, "quantization_config"},
           {"sliding_window", 4096, "sliding_window is 4096"},
           {"partial_rotary_factor", 0.5, "partial_rotary_factor is 0.5"},
           {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2}}, "\"yarn\""},
           {"rope_scaling", {{"type", "linear"}, {"factor", 2}}, "\"linear\""},
           {"rope_parameters", {{"rope_type", "dynamic"}}, "\"dynamic\""},
           {"rope_parameters",
            {{"full_attention", Json::object()}, {"rope_type", "longrope"}},
            "\"longrope\""},
           {"rope_parameters", partial, "partial_rotary_factor"},
           {"rope_scaling", reversed, "high_freq_factor 0.5"},
           {"rope_scaling", incomplete, "original_max_position_embeddings is absent"},
           {"rope_scaling", "llama3", "not an object"},
           {"rope_theta", 0, "rope_theta is 0"},
           {"rope_theta", "big", "not a finite number"},
           {"rms_norm_eps", 0, "rms_norm_eps is 0"},
           {"hidden_size", 0, "hidden_size is 0"},
           {"hidden_size", -64, "hidden_size is -64"},
           {"hidden_size", 64.5, "hidden_size is 64.5"},
           {"hidden_size", 18446744073709551615u, "hidden_size is 18446744073709551615"},
           {"hidden_size", nullptr, "hidden_size is absent"},
           {"hidden_size", 65, "does not divide hidden_size = 65"},
           {"num_hidden_layers", 1000000, "num_hidden_layers is 1000000"},
           {"tie_word_embeddings", 1, "tie_word_embeddings is 1"},
       }) {
    const auto model = With(c.key, c.value);
    EXPECT_EQ(model.status().code(), StatusCode::kInvalidArgument) << c.key << c.value;
    EXPECT_THAT(std::string(Message(model.status())), HasSubstr(c.words)) << c.key;
  }
}

TEST(HfConfigTest, MistralWithoutItsWindowIsLlama) {
  Json config = Small();
  config["model_type"] = "mistral";
  EXPECT_THAT(std::string(Message(Parse(config).status())), HasSubstr("sliding_window is absent"));
  config["sliding_window"] = nullptr;
  EXPECT_TRUE(Parse(config).ok()) << Parse(config).status();
}

TEST(HfConfigTest, TextThatIsNoObjectIsRefused) {
  for (const char* text : {"", "[]", "{", "3", "{\"model_type\": Infinity}"}) {
    EXPECT_EQ(ParseHfConfig(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

TEST(HfConfigTest, WhatIsWrittenReadsBackAsTheSameModel) {
  for (const bool scaled : {false, true}) {
    Json config = Small();
    config["rope_theta"] = 123456.75;
    config["head_dim"] = 24;
    config["eos_token_id"] = {7, 9};
    if (scaled) config["rope_scaling"] = Llama3();
    const auto model = Parse(config);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto text = HfConfigText(*model, NumberFormat::kBFloat16);
    ASSERT_TRUE(text.ok()) << text.status();
    const auto again = ParseHfConfig(*text);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->ShortDebugString(), model->ShortDebugString());
    EXPECT_EQ(Json::parse(*text)["dtype"], "bfloat16");
    EXPECT_EQ(Json::parse(*text)["eos_token_id"], Json({7, 9}));
  }
}

}  // namespace
}  // namespace troupe
