#include "plan/plan_digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "plan/job/job_defaults.h"
#include "plan/job/key_effects.h"
#include "plan/job/key_path.h"

namespace troupe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using ProtoMessage = google::protobuf::Message;

// Visits each field of `type` that is not a message, and the fields below those that are.
void ForEachLeaf(const Descriptor& type, const std::string& prefix,
                 const std::function<void(const std::string&)>& visit) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* const field = type.field(i);
    const std::string path = prefix + field->name();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachLeaf(*field->message_type(), path + ".", visit);
    } else {
      visit(path);
    }
  }
}

std::string Changed(const std::string& text) { return text + "x"; }

// Changes the value of the field at `path`; for repeated messages along the path it changes the
// first element, adding one if there is none.
void Change(const std::string& path, ProtoMessage* message) {
  const size_t dot = path.find('.');
  const FieldDescriptor* const field =
      message->GetDescriptor()->FindFieldByName(path.substr(0, dot));
  const auto* const reflection = message->GetReflection();
  if (dot != std::string::npos) {
    const std::string rest = path.substr(dot + 1);
    if (!field->is_repeated()) return Change(rest, reflection->MutableMessage(message, field));
    if (reflection->FieldSize(*message, field) == 0) reflection->AddMessage(message, field);
    return Change(rest, reflection->MutableRepeatedMessage(message, field, 0));
  }
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? reflection->AddString(message, field, "x")
                      : reflection->SetString(message, field,
                                              Changed(reflection->GetString(*message, field)));
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated
                 ? reflection->AddInt64(message, field, 7)
                 : reflection->SetInt64(message, field, reflection->GetInt64(*message, field) + 1);
    case FieldDescriptor::CPPTYPE_UINT64:
      return reflection->SetUInt64(message, field, reflection->GetUInt64(*message, field) + 1);
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated
                 ? reflection->AddInt32(message, field, 7)
                 : reflection->SetInt32(message, field, reflection->GetInt32(*message, field) + 1);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->SetDouble(message, field, reflection->GetDouble(*message, field) + 0.25);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(message, field, !reflection->GetBool(*message, field));
    default:
      FAIL() << "a type that no field had: " << field->full_name();
  }
}

bool IsException(std::span<const DigestException> exceptions, const std::string& path) {
  for (const DigestException& exception : exceptions) {
    if (path == exception.path || path.starts_with(std::string(exception.path) + ".")) return true;
  }
  return false;
}

// A job in which every key has an effect.
v1::JobSpec RichJob() {
  v1::JobSpec spec;
  spec.mutable_model()->set_pattern("(ADAE)x1");
  spec.mutable_model()->set_num_experts(4);
  spec.mutable_model()->mutable_rope_scaling();
  for (const char* path : {"/a", "/b"}) spec.mutable_data()->add_blend()->set_path(path);
  spec.mutable_data()->set_validation_fraction(0.25);
  spec.mutable_training()->mutable_mixed_precision();
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_lr_schedule()->set_decay_type("wsd");
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  parallelism.set_data_parallel_shard_degree(2);
  parallelism.set_tensor_parallel_degree(2);
  parallelism.set_context_parallel_degree(2);
  parallelism.set_expert_parallel_degree(2);
  parallelism.set_sequence_parallel(true);
  spec.mutable_activation_recomputation()->set_mode("full");
  spec.mutable_checkpoint()->set_folder("/c");
  spec.set_devices("xla");
  ApplyDefaults(&spec);
  return spec;
}

// A job in which the keys of the other optimizer have an effect.
v1::JobSpec RichSgdJob() {
  v1::JobSpec spec = RichJob();
  spec.clear_optimizer();
  spec.mutable_optimizer()->set_name("sgd");
  spec.mutable_optimizer()->set_momentum(0.5);
  ApplyDefaults(&spec);
  return spec;
}

v1::Plan PlacedPlan() {
  v1::Plan plan;
  for (int rank = 0; rank < 2; ++rank) {
    v1::RankPlacement* const placement = plan.add_ranks();
    placement->set_worker(rank == 0 ? "a" : "b");
    placement->set_host("h");
    placement->set_island("i");
  }
  return plan;
}

TEST(PlanDigestTest, EveryKeyOfAJobIsPartOfItOrOnTheListWithAReason) {
  const v1::JobSpec adamw = RichJob(), sgd = RichSgdJob();
  int leaves = 0;
  ForEachLeaf(*v1::JobSpec::descriptor(), "", [&](const std::string& path) {
    SCOPED_TRACE(path);
    const v1::JobSpec& spec = WhyWithoutEffect(adamw, path).empty() ? adamw : sgd;
    const std::string digest = PlanDigest(spec, PlacedPlan());
    EXPECT_EQ(WhyWithoutEffect(spec, path), "");
    v1::JobSpec changed = spec;
    Change(path, &changed);
    EXPECT_EQ(PlanDigest(changed, PlacedPlan()) == digest,
              IsException(DigestExceptionsOfJob(), path));
    ++leaves;
  });
  EXPECT_GT(leaves, 90);
}

TEST(PlanDigestTest, EveryFieldOfAPlanIsPartOfItOrOnTheListWithAReason) {
  const v1::Plan plan = PlacedPlan();
  const std::string digest = PlanDigest(RichJob(), plan);
  int leaves = 0;
  ForEachLeaf(*v1::Plan::descriptor(), "", [&](const std::string& path) {
    SCOPED_TRACE(path);
    v1::Plan changed = plan;
    Change(path, &changed);
    EXPECT_EQ(PlanDigest(RichJob(), changed) == digest,
              IsException(DigestExceptionsOfPlan(), path));
    ++leaves;
  });
  EXPECT_GT(leaves, 90);
}

TEST(PlanDigestTest, ExceptionsNameFieldsAndStateWhy) {
  const v1::JobSpec spec = RichJob();
  for (const DigestException& exception : DigestExceptionsOfJob()) {
    v1::JobSpec cleared = spec;
    ClearKey(exception.path, &cleared);  // aborts the test if there is no such field
    EXPECT_FALSE(exception.reason.empty());
  }
  for (const DigestException& exception : DigestExceptionsOfPlan()) {
    v1::Plan cleared = PlacedPlan();
    ClearKey(exception.path, &cleared);
    EXPECT_FALSE(exception.reason.empty());
  }
}

TEST(PlanDigestTest, KeysWithoutEffectAreNoPartOfIt) {
  v1::JobSpec spec;
  spec.mutable_data()->add_blend()->set_path("/a");
  ApplyDefaults(&spec);
  const std::string digest = PlanDigest(spec, {});
  for (const ConditionalKey& key : ConditionalKeys()) {
    if (WhyWithoutEffect(spec, key.path).empty()) continue;
    v1::JobSpec changed = spec;
    Change(std::string(key.path), &changed);
    EXPECT_EQ(PlanDigest(changed, {}), digest) << key.path;
  }
}

TEST(PlanDigestTest, RanksCountByTheHostsAndIslandsThatTheyShare) {
  const v1::JobSpec spec = RichJob();
  v1::Plan elsewhere = PlacedPlan();
  for (v1::RankPlacement& rank : *elsewhere.mutable_ranks()) {
    rank.set_worker("other-" + rank.worker());
    rank.set_host("other");
    rank.set_island("far");
    rank.set_device(3);
  }
  EXPECT_EQ(PlanDigest(spec, elsewhere), PlanDigest(spec, PlacedPlan()));
  elsewhere.mutable_ranks(1)->set_host("h");
  EXPECT_NE(PlanDigest(spec, elsewhere), PlanDigest(spec, PlacedPlan()));
}

}  // namespace
}  // namespace troupe
