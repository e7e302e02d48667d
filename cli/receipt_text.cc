#include "cli/receipt_text.h"

#include <fmt/format.h>

namespace troupe {
namespace {

constexpr const char* kHeader[] = {"environment",     "topology", "model_mix", "batch_geometry",
                                   "sequence_length", "workload", "precision"};

// The fields of the whole job, which the receipt of one of its other plans lacks.
constexpr const char* kOfJob[] = {"job", "state", "compile", "write_method", "other_plans"};

Json OrNull(bool has, const Json& value) { return has ? value : Json(nullptr); }
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json Counts(const google::protobuf::RepeatedPtrField<v1::OperationCount>& counts) {
  Json json = Json::object();
  for (const auto& entry : counts) json[entry.operation()] = entry.count();
  return json;
}

template <typename Texts>
Json List(const Texts& texts) {
  Json json = Json::array();
  for (const auto& text : texts) json.push_back(text);
  return json;
}

Json SteadyToJson(const v1::Receipt::Steady& steady, bool measured) {
  Json exposed = Json::object();
  Json total = Json::object();
  for (const auto& communication : steady.communication()) {
    exposed[communication.purpose()] = communication.exposed();
    total[communication.purpose()] = communication.total();
  }
  const bool any = steady.steps() > 0;
  return {{"steps", steady.steps()},
          {"seconds", steady.seconds()},
          {"fastest_step_seconds", OrNull(any, steady.fastest_step_seconds())},
          {"slowest_step_seconds", OrNull(any, steady.slowest_step_seconds())},
          {"tokens_per_second", OrNull(steady.has_tokens_per_second(), steady.tokens_per_second())},
          {"mfu", OrNull(steady.has_mfu(), steady.mfu())},
          {"mfu_convention", steady.mfu_convention()},
          {"exposed_communication_seconds", OrNull(measured, std::move(exposed))},
          {"communication_seconds", OrNull(measured, std::move(total))},
          {"bubble",
           {{"planned", OrNull(steady.has_bubble_planned(), steady.bubble_planned())},
            {"measured", OrNull(steady.has_bubble_measured(), steady.bubble_measured())}}},
          {"data_wait_seconds", OrNull(steady.has_data_wait_seconds(), steady.data_wait_seconds())},
          {"core_wait_seconds", OrNull(steady.has_core_wait_seconds(), steady.core_wait_seconds())},
          {"host_syncs_per_step",
           OrNull(steady.has_host_syncs_per_step(), steady.host_syncs_per_step())},
          {"graph_launches_per_step",
           OrNull(steady.has_graph_launches_per_step(), steady.graph_launches_per_step())}};
}

void AddDifferences(const std::string& path, const Json& a, const Json& b,
                    std::vector<std::string>* differences) {
  if (a.is_object() && b.is_object()) {
    for (const auto& [key, value] : a.items()) {
      AddDifferences(path + "." + key, value, b.contains(key) ? b[key] : Json(nullptr),
                     differences);
    }
    for (const auto& [key, value] : b.items()) {
      if (!a.contains(key)) AddDifferences(path + "." + key, nullptr, value, differences);
    }
    return;
  }
  if (a == b) return;
  differences->push_back(fmt::format("{}: {} here, {} there", path, Dump(a), Dump(b)));
}

void AddLines(const std::string& path, const Json& value, std::string* text) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      AddLines(path.empty() ? key : path + "." + key, member, text);
    }
    return;
  }
  if (value.is_array() && !value.empty()) {
    for (const auto& entry : value) AddLines(path, entry, text);
    return;
  }
  std::string shown = value.is_string() ? value.get<std::string>() : Dump(value);
  if (value.is_null()) shown = "not measured";
  if (value.empty() && !value.is_null() && !value.is_string()) shown = "none";
  if (value.is_number_float()) shown = fmt::format("{:.6g}", value.get<double>());
  *text += fmt::format("{:<46} {}\n", path, shown);
}

}  // namespace

Json ReceiptToJson(const v1::Receipt& receipt) {
  const auto& environment = receipt.environment();
  Json blocks = Json::object();
  for (const auto& block : receipt.blocks()) blocks[block.block()] = block.count();
  const auto& mesh = receipt.topology();
  const auto& batch = receipt.batch_geometry();
  Json json;
  json["job"] = receipt.job();
  json["state"] = receipt.state();
  json["plan_digest"] = receipt.plan_digest();
  json["environment"] = {{"devices", List(environment.devices())},
                         {"driver", OrNull(environment.driver())},
                         {"libraries", OrNull(environment.libraries())},
                         {"flags", List(environment.flags())},
                         {"transports", List(environment.transports())},
                         {"implementations", List(environment.implementations())},
                         {"hosts", environment.hosts()},
                         {"islands", environment.islands()}};
  json["topology"] = {{"pipe", mesh.pipe()},
                      {"data_replicate", mesh.data_replicate()},
                      {"data_shard", mesh.data_shard()},
                      {"context", mesh.context()},
                      {"expert", mesh.expert()},
                      {"tensor", mesh.tensor()}};
  json["model_mix"] = {{"pattern", receipt.pattern()}, {"blocks", std::move(blocks)}};
  json["batch_geometry"] = {{"global_batch_size", batch.global_batch_size()},
                            {"micro_batch_size", batch.micro_batch_size()},
                            {"microbatches", batch.microbatches()},
                            {"data_ranks", batch.data_ranks()}};
  json["sequence_length"] = receipt.sequence_length();
  json["workload"] = {{"family", receipt.workload_family()},
                      {"documents", receipt.document_mask() ? "masked" : "joined"}};
  json["seen_pairs"] = OrNull(receipt.has_seen_pairs(), receipt.seen_pairs());
  json["precision"] = {{"intended", receipt.precision_intended()},
                       {"executed", OrNull(receipt.precision_executed())}};
  json["compile"] = nullptr;
  if (receipt.has_compile()) {
    const auto& compile = receipt.compile();
    json["compile"] = {{"count", compile.count()},
                       {"seconds", compile.seconds()},
                       {"cache_hits", OrNull(compile.has_cache_hits(), compile.cache_hits())},
                       {"recaptures", OrNull(compile.has_recaptures(), compile.recaptures())},
                       {"load_seconds", compile.load_seconds()}};
  }
  json["warm_up"] = {{"steps", receipt.warm_up().steps()},
                     {"seconds", receipt.warm_up().seconds()}};
  json["steps_apart"] = receipt.steps_apart();
  json["schedule"] = receipt.schedule();
  json["overlap_policy"] = receipt.overlap_policy();
  json["bucket_policy"] = {{"elements", receipt.bucket().elements()},
                           {"alignment", receipt.bucket().alignment()},
                           {"padding", receipt.bucket().padding()},
                           {"measured_on", receipt.bucket_measured_on()}};
  json["steady"] = SteadyToJson(receipt.steady(), receipt.steady().has_data_wait_seconds());
  json["fallbacks"] = OrNull(receipt.ready(), Counts(receipt.fallbacks()));
  json["target_shape"] = {{"tokens_per_step", receipt.target_tokens_per_step()},
                          {"reached", receipt.target_reached()}};
  if (!receipt.target_missed().empty()) json["target_shape"]["why"] = receipt.target_missed();
  json["write_method"] = Counts(receipt.checkpoint_writes());
  json["restarts"] = receipt.restarts();
  json["suspect"] = List(receipt.suspect());
  Json others = Json::array();
  for (const auto& other : receipt.other_plans()) {
    others.push_back(ReceiptToJson(other));
    for (const char* field : kOfJob) others.back().erase(field);
  }
  json["other_plans"] = std::move(others);
  return json;
}

std::string ReceiptToText(const Json& receipt) {
  std::string text;
  Json newest = receipt;
  newest.erase("other_plans");
  AddLines("", newest, &text);
  for (const Json& other : receipt.value("other_plans", Json::array())) {
    AddLines("other_plans", OtherPlanLine(other), &text);
  }
  return text;
}

std::string OtherPlanLine(const Json& receipt) {
  const Json& steady = receipt["steady"];
  const Json& rate = steady["tokens_per_second"];
  return fmt::format("{}: {} steady steps, {}, {}, {}", receipt["plan_digest"].get<std::string>(),
                     steady["steps"].get<int64_t>(),
                     rate.is_null() ? "no tokens/s measured"
                                    : fmt::format("{:.6g} tokens/s", rate.get<double>()),
                     receipt["precision"]["intended"].get<std::string>(),
                     receipt["schedule"].get<std::string>());
}

std::vector<std::string> UnlikeFields(const Json& a, const Json& b) {
  std::vector<std::string> differences;
  for (const char* field : kHeader) {
    AddDifferences(field, a.value(field, Json()), b.value(field, Json()), &differences);
  }
  return differences;
}

}  // namespace troupe
