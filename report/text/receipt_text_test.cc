#include "report/text/receipt_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

v1::Receipt Measured() {
  v1::Receipt receipt;
  receipt.set_job("jobs/a");
  receipt.set_plan_digest("sha256:a");
  receipt.set_sequence_length(256);
  receipt.set_ready(true);
  receipt.mutable_topology()->set_tensor(2);
  receipt.mutable_environment()->add_devices("2 x EPYC");
  receipt.mutable_compile()->set_count(2);
  auto* const steady = receipt.mutable_steady();
  steady->set_steps(12);
  steady->set_tokens_per_second(1000);
  steady->mutable_mean()->set_data_wait_seconds(0.5);
  steady->set_bubble_planned(0);
  auto* const communication = steady->mutable_mean()->add_communication();
  communication->set_purpose("tensor");
  communication->set_exposed(0.25);
  communication->set_total(0.5);
  return receipt;
}

TEST(ReceiptTextTest, AReceiptHasTheFieldsOfTheContract) {
  const Json json = ReceiptToJson(Measured());
  for (const char* field : {"job", "plan_digest", "environment", "model_mix", "batch_geometry",
                            "sequence_length", "workload", "precision", "compile", "overlap_policy",
                            "steady", "fallbacks", "target_shape", "suspect"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  for (const char* field :
       {"devices", "driver", "libraries", "flags", "transports", "implementations"}) {
    EXPECT_TRUE(json["environment"].contains(field)) << field;
  }
  for (const char* field :
       {"steps", "tokens_per_second", "mfu", "mfu_convention", "exposed_communication_seconds",
        "bubble", "data_wait_seconds", "host_syncs_per_step", "graph_launches_per_step"}) {
    EXPECT_TRUE(json["steady"].contains(field)) << field;
  }
  EXPECT_EQ(json["steady"]["exposed_communication_seconds"]["tensor"], 0.25);
  EXPECT_EQ(json["steady"]["data_wait_seconds"], 0.5);
  EXPECT_FALSE(json["steady"].contains("bubble_ratio")) << "it is bubble.measured";
  EXPECT_TRUE(json["fallbacks"].is_object());
}

TEST(ReceiptTextTest, WhatWasNotMeasuredIsNull) {
  const Json json = ReceiptToJson(v1::Receipt());
  EXPECT_TRUE(json["steady"]["tokens_per_second"].is_null());
  EXPECT_TRUE(json["steady"]["mfu"].is_null());
  EXPECT_TRUE(json["steady"]["exposed_communication_seconds"].is_null());
  EXPECT_TRUE(json["steady"]["bubble"]["measured"].is_null());
  EXPECT_TRUE(json["compile"].is_null());
  EXPECT_TRUE(json["fallbacks"].is_null());
  EXPECT_THAT(ReceiptToText(json), HasSubstr("not measured"));
}

TEST(ReceiptTextTest, HeadersThatDifferNameTheirFields) {
  const v1::Receipt a = Measured();
  v1::Receipt b = a;
  EXPECT_THAT(UnlikeFields(ReceiptToJson(a), ReceiptToJson(b)), IsEmpty());
  b.mutable_steady()->set_tokens_per_second(2000);
  b.set_job("jobs/b");
  b.set_schedule("GPipe");
  EXPECT_THAT(UnlikeFields(ReceiptToJson(a), ReceiptToJson(b)), IsEmpty());
  b.mutable_topology()->set_tensor(4);
  b.set_sequence_length(512);
  EXPECT_THAT(UnlikeFields(ReceiptToJson(a), ReceiptToJson(b)),
              ElementsAre("topology.tensor: 2 in the first, 4 in the second",
                          "sequence_length: 256 in the first, 512 in the second"));
  b.mutable_environment()->add_flags("UCX_TLS=tcp");
  EXPECT_THAT(UnlikeFields(ReceiptToJson(a), ReceiptToJson(b)),
              Contains(HasSubstr("environment.flags")));
}

TEST(ReceiptTextTest, OtherPlansAreListedAfterTheNewest) {
  v1::Receipt receipt = Measured();
  v1::Receipt& other = *receipt.add_other_plans();
  other = Measured();
  other.set_plan_digest("sha256:b");
  other.set_precision_intended("bfloat16");
  other.set_schedule("1F1B");
  const Json json = ReceiptToJson(receipt);
  ASSERT_EQ(json["other_plans"].size(), 1u);
  EXPECT_EQ(json["other_plans"][0]["plan_digest"], "sha256:b");
  EXPECT_EQ(json["other_plans"][0]["steady"]["tokens_per_second"], 1000.0);
  EXPECT_FALSE(json["other_plans"][0].contains("compile"));  // a field of the whole job
  EXPECT_THAT(ReceiptToText(json),
              HasSubstr("sha256:b: 12 steady steps, 1000 tokens/s, bfloat16, 1F1B\n"));
}

TEST(ReceiptTextTest, TheWorkOfACompilerIsShownWhereThereIsOne) {
  EXPECT_TRUE(ReceiptToJson(Measured())["compile"]["compiler"].is_null());
  v1::Receipt receipt = Measured();
  receipt.add_compiler_options("xla_allow_excess_precision=false");
  v1::Receipt::Compiler& compiler = *receipt.mutable_compile()->mutable_compiler();
  compiler.add_plugins("xla_cpu_pjrt.so: cpu, PJRT 0.81");
  compiler.set_cache_hits(6);
  v1::OperationCount& fault = *compiler.add_cache_faults();
  fault.set_operation("an entry is damaged");
  fault.set_count(2);
  const Json json = ReceiptToJson(receipt);
  EXPECT_EQ(json["compile"]["compiler"]["compiled"], 0);
  EXPECT_EQ(json["compile"]["compiler"]["cache_hits"], 6);
  EXPECT_EQ(json["compile"]["compiler"]["cache_faults"]["an entry is damaged"], 2);
  const std::string text = ReceiptToText(json);
  EXPECT_THAT(text, HasSubstr("xla_cpu_pjrt.so: cpu, PJRT 0.81"));
  EXPECT_THAT(text, HasSubstr("compile.compiler.cache_faults.an entry is damaged"));
  EXPECT_THAT(text, HasSubstr("xla_allow_excess_precision=false"));
  // Options are what one compares.
  EXPECT_THAT(UnlikeFields(json, ReceiptToJson(Measured())), IsEmpty());
}

TEST(ReceiptTextTest, TextBeginsWithWhyTheFiguresMayMislead) {
  v1::Receipt receipt = Measured();
  EXPECT_THAT(ReceiptToText(ReceiptToJson(receipt)), StartsWith("suspect    "));
  receipt.add_suspect("few steps");
  receipt.add_suspect("the slowest steady step took 2.5 times as long as the fastest one");
  const Json json = ReceiptToJson(receipt);
  EXPECT_THAT(ReceiptToText(json),
              StartsWith("suspect                                        few steps\n"
                         "suspect\n"
                         "    the slowest steady step took 2.5 times as long as the fastest one\n"
                         "job    "));
  EXPECT_THAT(ReceiptToRows(json), Contains(testing::Pair("suspect", "few steps")).Times(1));
}

TEST(ReceiptTextTest, LinesFitEightyColumns) {
  v1::Receipt receipt = Measured();
  receipt.set_plan_digest("sha256:" + std::string(64, 'f'));
  receipt.add_suspect("a reason of many words " + std::string(60, 'a') + " that goes on and on");
  std::istringstream text(ReceiptToText(ReceiptToJson(receipt)));
  for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(ReceiptTextTest, TextHasALineForEachField) {
  const std::string text = ReceiptToText(ReceiptToJson(Measured()));
  EXPECT_THAT(text, HasSubstr("steady.exposed_communication_seconds.tensor"));
  EXPECT_THAT(text, HasSubstr("2 x EPYC"));
}

}  // namespace
}  // namespace troupe
