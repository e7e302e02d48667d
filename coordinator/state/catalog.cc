#include "coordinator/state/catalog.h"

#include <charconv>
#include <span>
#include <utility>

#include "checkpoint/format/digest.h"
#include "plan/job/job_name.h"

namespace troupe {
namespace {

constexpr char kLeaderEpoch[] = "leader_epoch";
constexpr char kEpochFloor[] = "epoch_floor";

// Kinds of rows of which a job has one (kJobRows) or many (kNumberedRows).
constexpr const char* kJobRows[] = {"job",   "spec",    "plan", "smaller",
                                    "group", "receipt", "data", "images"};
constexpr const char* kNumberedRows[] = {"history", "event", "checkpoint"};

bool IsOfJob(std::string_view key, const std::string& id) {
  for (const char* kind : kJobRows) {
    if (key == fmt::format("{}/{}", kind, id)) return true;
  }
  for (const char* kind : kNumberedRows) {
    if (key.starts_with(fmt::format("{}/{}/", kind, id))) return true;
  }
  return false;
}

std::string Numbered(std::string_view kind, const std::string& id, uint64_t number) {
  return fmt::format("{}/{}/{:016x}", kind, id, number);
}

std::string LeaseKeyText(const std::string& worker, int32_t device) {
  return fmt::format("lease/{}/{:016x}", worker, static_cast<uint64_t>(device));
}

// Deterministic, because no message of the catalog has a map field.
std::string Encode(const google::protobuf::MessageLite& message) {
  return message.SerializeAsString();
}

template <typename Message>
Status Decode(std::string_view key, std::string_view value, Message* message) {
  if (!message->ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return DataLoss("catalog: the value of {} ({} bytes) is not a {}", key, value.size(),
                    message->GetTypeName());
  }
  return OkStatus();
}

StatusOr<uint64_t> DecodeEpoch(std::string_view key, std::string_view value) {
  uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), epoch);
  if (error != std::errc() || end != value.data() + value.size()) {
    return DataLoss("catalog: the value of {} is \"{}\", not a number", key, value);
  }
  return epoch;
}

// Returns 0 if the key is absent.
StatusOr<uint64_t> ReadEpoch(const Store& store, std::string_view key) {
  const StatusOr<std::string> value = store.Get(key);
  if (value.status().code() == StatusCode::kNotFound) return uint64_t{0};
  TROUPE_RETURN_IF_ERROR(value.status());
  return DecodeEpoch(key, *value);
}

// The parts of a key "kind/ID" or "kind/ID/NUMBER"; `number` is 0 in the first form.
struct KeyParts {
  std::string id;
  uint64_t number = 0;
};

StatusOr<KeyParts> ParseKey(std::string_view key, std::string_view prefix, bool numbered) {
  std::string_view rest = key.substr(prefix.size());
  KeyParts parts;
  if (!numbered) {
    parts.id = std::string(rest);
    return parts;
  }
  const size_t slash = rest.rfind('/');
  if (slash == std::string_view::npos) return DataLoss("catalog: key {} has no number", key);
  parts.id = std::string(rest.substr(0, slash));
  const std::string_view digits = rest.substr(slash + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), parts.number, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return DataLoss("catalog: key {} does not end in a number", key);
  }
  return parts;
}

// Calls `take(parts, message)` for every key "kind/…".
template <typename Message, typename Take>
Status ReadKind(const Store& store, const std::string& prefix, bool numbered, Take take) {
  Status status;
  TROUPE_RETURN_IF_ERROR(
      ScanPrefix(store, prefix, [&](std::string_view key, std::string_view value) {
        StatusOr<KeyParts> parts = ParseKey(key, prefix, numbered);
        Message message;
        status = parts.ok() ? Decode(key, value, &message) : parts.status();
        if (!status.ok()) return false;
        take(*parts, std::move(message));
        return true;
      }));
  return status;
}

constexpr std::string_view kRequestPrefix = "request/";
constexpr std::string_view kRequestDigestPrefix = "request_digest/";

std::string KeyOfRequestId(std::string_view space, std::string_view id) {
  const bool is_plain = space == kDefaultNamespace && id.find('/') == id.npos;
  return is_plain ? std::string(id) : fmt::format("{}/{}", space, id);
}

// Returns the RequestKey of a row of a job's request, whose key may be the id alone.
std::string CurrentRequestKey(std::string_view key, std::string_view job) {
  const std::string_view space = NamespaceOf(job);
  const bool has_space = key.starts_with(fmt::format("{}/", space));
  return has_space ? std::string(key) : KeyOfRequestId(space, key);
}

// In older catalogs a request has its id as its key, in whatever namespace its job is. Adds the
// writes that give these requests the keys of RequestKey: an id must not lead to a job of another
// namespace.
Status RekeyRequests(const Store& store, WriteBatch* writes) {
  std::vector<std::pair<std::string, std::string>> moved;  // keys, before and after
  TROUPE_RETURN_IF_ERROR(
      ScanPrefix(store, kRequestPrefix, [&](std::string_view row, std::string_view job) {
        const std::string_view key = row.substr(kRequestPrefix.size());
        std::string current = CurrentRequestKey(key, job);
        if (current != key) moved.emplace_back(key, std::move(current));
        return true;
      }));
  WriteBatch puts;  // after all deletions, of whose keys one may be put
  for (const std::string_view prefix : {kRequestPrefix, kRequestDigestPrefix}) {
    for (const auto& [before, after] : moved) {
      const std::string row = fmt::format("{}{}", prefix, before);
      StatusOr<std::string> value = store.Get(row);
      if (value.status().code() == StatusCode::kNotFound) continue;  // a request without a digest
      TROUPE_RETURN_IF_ERROR(value.status());
      writes->Delete(row);
      puts.Put(fmt::format("{}{}", prefix, after), *std::move(value));
    }
  }
  writes->Append(puts);
  return OkStatus();
}

}  // namespace

std::string RequestKey(const v1::CreateJobRequest& request) {
  return KeyOfRequestId(NamespaceOf(request.job().name()), request.request_id());
}

std::string RequestDigest(const v1::CreateJobRequest& request) {
  v1::CreateJobRequest content = request;
  content.clear_request_id();
  // Deterministic, because no message of a job has a map field.
  const std::string bytes = content.SerializeAsString();
  return Sha256Of(std::as_bytes(std::span(bytes)));
}

void CatalogBatch::PutLeaderEpoch(uint64_t epoch) {
  batch_.Put(kLeaderEpoch, fmt::format("{}", epoch));
}
void CatalogBatch::PutEpochFloor(uint64_t epoch) {
  batch_.Put(kEpochFloor, fmt::format("{}", epoch));
}
void CatalogBatch::PutJob(const v1::JobRecord& record) {
  batch_.Put("job/" + record.id(), Encode(record));
}
void CatalogBatch::PutSpec(const std::string& id, const v1::JobSpec& spec) {
  batch_.Put("spec/" + id, Encode(spec));
}
void CatalogBatch::PutPlan(const std::string& id, const v1::Plan& plan) {
  batch_.Put("plan/" + id, Encode(plan));
}
void CatalogBatch::PutSmallerLayout(const std::string& id, const v1::SmallerLayout& layout) {
  batch_.Put("smaller/" + id, Encode(layout));
}
void CatalogBatch::DeleteSmallerLayout(const std::string& id) { batch_.Delete("smaller/" + id); }
void CatalogBatch::PutGroup(const std::string& id, const v1::GroupRecord& group) {
  batch_.Put("group/" + id, Encode(group));
}
void CatalogBatch::PutTally(const std::string& id, const v1::ReceiptTally& tally) {
  batch_.Put("receipt/" + id, Encode(tally));
}
void CatalogBatch::PutData(const std::string& id, const v1::DataIdentity& data) {
  batch_.Put("data/" + id, Encode(data));
}
void CatalogBatch::PutImages(const std::string& id, const v1::JobImages& images) {
  batch_.Put("images/" + id, Encode(images));
}
void CatalogBatch::DeleteImages(const std::string& id) { batch_.Delete("images/" + id); }
void CatalogBatch::PutLease(const std::string& worker, int32_t device,
                            const v1::LeaseRecord& lease) {
  batch_.Put(LeaseKeyText(worker, device), Encode(lease));
}
void CatalogBatch::DeleteLease(const std::string& worker, int32_t device) {
  batch_.Delete(LeaseKeyText(worker, device));
}
void CatalogBatch::PutBlame(const v1::BlameRecord& record) {
  batch_.Put("blame/" + record.worker(), Encode(record));
}
void CatalogBatch::DeleteBlame(const std::string& worker) { batch_.Delete("blame/" + worker); }
void CatalogBatch::PutDrain(const v1::DrainRecord& record) {
  batch_.Put("drain/" + record.worker(), Encode(record));
}
void CatalogBatch::DeleteDrain(const std::string& worker) { batch_.Delete("drain/" + worker); }
void CatalogBatch::PutStep(const std::string& id, const v1::StepEvent& step) {
  batch_.Put(Numbered("history", id, static_cast<uint64_t>(step.step())), Encode(step));
}
void CatalogBatch::DeleteStep(const std::string& id, int64_t step) {
  batch_.Delete(Numbered("history", id, static_cast<uint64_t>(step)));
}
void CatalogBatch::PutEvent(const std::string& id, uint64_t number, const v1::JobEvent& event) {
  batch_.Put(Numbered("event", id, number), Encode(event));
}
void CatalogBatch::DeleteEvent(const std::string& id, uint64_t number) {
  batch_.Delete(Numbered("event", id, number));
}
void CatalogBatch::PutCheckpoint(const v1::CheckpointRecord& record) {
  batch_.Put(Numbered("checkpoint", record.job(), static_cast<uint64_t>(record.attempt())),
             Encode(record));
}
void CatalogBatch::DeleteCheckpoint(const std::string& id, int64_t attempt) {
  batch_.Delete(Numbered("checkpoint", id, static_cast<uint64_t>(attempt)));
}
void CatalogBatch::PutRequest(const std::string& request_key, const std::string& id,
                              const std::string& digest) {
  batch_.Put(fmt::format("{}{}", kRequestPrefix, request_key), id);
  batch_.Put(fmt::format("{}{}", kRequestDigestPrefix, request_key), digest);
}

void CatalogBatch::DeleteRequest(const std::string& request_key) {
  batch_.Delete(fmt::format("{}{}", kRequestPrefix, request_key));
  batch_.Delete(fmt::format("{}{}", kRequestDigestPrefix, request_key));
}

void CatalogBatch::PutUsedRequest(const std::string& request_key,
                                  const v1::UsedRequestRecord& record) {
  batch_.Put("used_request/" + request_key, Encode(record));
}
void CatalogBatch::DeleteUsedRequest(const std::string& request_key) {
  batch_.Delete("used_request/" + request_key);
}

void CatalogBatch::PutUserToken(const v1::UserTokenRecord& record) {
  batch_.Put("user_token/" + record.token().id(), Encode(record));
}
void CatalogBatch::DeleteUserToken(const std::string& id) { batch_.Delete("user_token/" + id); }
void CatalogBatch::PutRevocation(const v1::Revocation& revocation) {
  batch_.Put(revocation.which_case() == v1::Revocation::kSerial
                 ? "revocation/serial/" + revocation.serial()
                 : "revocation/identity/" + revocation.identity(),
             Encode(revocation));
}

void CatalogBatch::Append(const CatalogBatch& later) {
  const size_t before = batch_.changes().size();
  batch_.Append(later.batch_);
  for (const DeletedJob& job : later.deleted_jobs_) {
    deleted_jobs_.push_back({before + job.position, job.id});
  }
}

StatusOr<WriteBatch> CatalogBatch::ForStore(const Store& store) const {
  if (deleted_jobs_.empty()) return batch_;
  WriteBatch writes;
  size_t done = 0;
  const auto copy_up_to = [&](size_t end) {
    for (; done < end; ++done) {
      const WriteBatch::Change& change = batch_.changes()[done];
      if (change.value) {
        writes.Put(change.key, *change.value);
      } else {
        writes.Delete(change.key);
      }
    }
  };
  for (const DeletedJob& job : deleted_jobs_) {
    copy_up_to(job.position);
    std::vector<std::string> keys;
    for (const WriteBatch::Change& change : writes.changes()) {
      if (IsOfJob(change.key, job.id)) keys.push_back(change.key);
    }
    for (const char* kind : kJobRows) keys.push_back(fmt::format("{}/{}", kind, job.id));
    for (const char* kind : kNumberedRows) {
      TROUPE_RETURN_IF_ERROR(ScanPrefix(store, fmt::format("{}/{}/", kind, job.id),
                                        [&](std::string_view key, std::string_view) {
                                          keys.emplace_back(key);
                                          return true;
                                        }));
    }
    for (std::string& key : keys) writes.Delete(std::move(key));
  }
  copy_up_to(batch_.changes().size());
  return writes;
}

namespace {

// Reads each row "KIND/ID" into `member` of its job.
template <typename Message, typename Member>
Status ReadJobRow(const Store& store, const std::string& prefix, Member CatalogJob::*member,
                  std::map<std::string, CatalogJob>* jobs) {
  return ReadKind<Message>(store, prefix, false, [&](const KeyParts& key, Message value) {
    (*jobs)[key.id].*member = std::move(value);
  });
}

// Reads the rows of which a job has one.
Status ReadJobRows(const Store& store, std::map<std::string, CatalogJob>* jobs) {
  using Row = CatalogJob;
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::JobRecord>(store, "job/", &Row::record, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::JobSpec>(store, "spec/", &Row::spec, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::Plan>(store, "plan/", &Row::plan, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::SmallerLayout>(store, "smaller/", &Row::smaller, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::GroupRecord>(store, "group/", &Row::group, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::ReceiptTally>(store, "receipt/", &Row::tally, jobs));
  TROUPE_RETURN_IF_ERROR(ReadJobRow<v1::DataIdentity>(store, "data/", &Row::data, jobs));
  return ReadJobRow<v1::JobImages>(store, "images/", &Row::images, jobs);
}

}  // namespace

StatusOr<CatalogImage> ReadCatalog(const Store& store) {
  CatalogImage image;
  TROUPE_ASSIGN_OR_RETURN(image.leader_epoch, ReadEpoch(store, kLeaderEpoch));
  TROUPE_ASSIGN_OR_RETURN(image.epoch_floor, ReadEpoch(store, kEpochFloor));
  TROUPE_RETURN_IF_ERROR(ReadJobRows(store, &image.jobs));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::CheckpointRecord>(
      store, "checkpoint/", true, [&](const KeyParts& key, v1::CheckpointRecord value) {
        image.jobs[key.id].checkpoints[static_cast<int64_t>(key.number)] = std::move(value);
      }));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::LeaseRecord>(
      store, "lease/", true, [&](const KeyParts& key, v1::LeaseRecord value) {
        image.leases[{key.id, static_cast<int32_t>(key.number)}] = std::move(value);
      }));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::BlameRecord>(
      store, "blame/", false,
      [&](const KeyParts& key, v1::BlameRecord value) { image.blame[key.id] = std::move(value); }));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::DrainRecord>(store, "drain/", false,
                                                   [&](const KeyParts& key, v1::DrainRecord value) {
                                                     image.drains[key.id] = std::move(value);
                                                   }));
  TROUPE_RETURN_IF_ERROR(
      ScanPrefix(store, kRequestPrefix, [&](std::string_view key, std::string_view value) {
        image.requests[std::string(key.substr(kRequestPrefix.size()))] = std::string(value);
        return true;
      }));
  TROUPE_RETURN_IF_ERROR(
      ScanPrefix(store, kRequestDigestPrefix, [&](std::string_view key, std::string_view value) {
        image.request_digests[std::string(key.substr(kRequestDigestPrefix.size()))] =
            std::string(value);
        return true;
      }));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::UsedRequestRecord>(
      store, "used_request/", false, [&](const KeyParts& key, v1::UsedRequestRecord value) {
        image.used_requests[key.id] = std::move(value);
      }));
  for (auto& [id, job] : image.jobs) {
    if (job.record.id() != id || job.spec.name() != id) {
      return DataLoss("catalog: job {} has no record or no specification", id);
    }
    if (job.record.step() == 0) continue;
    // A damaged history is an error of the calls that read it.
    const auto rows = ReadHistory(store, id, job.record.step(), 1);
    if (rows.ok() && !rows->empty() && rows->front().step() == job.record.step())
      job.last_step = rows->front();
  }
  return image;
}

StatusOr<AccessRecords> ReadAccessRecords(const Store& store) {
  AccessRecords records;
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::UserTokenRecord>(
      store, "user_token/", false, [&](const KeyParts&, v1::UserTokenRecord record) {
        records.tokens.push_back(std::move(record));
      }));
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::Revocation>(
      store, "revocation/", false, [&](const KeyParts&, v1::Revocation revocation) {
        records.revocations.push_back(std::move(revocation));
      }));
  return records;
}

StatusOr<uint64_t> AdvanceLeaderEpoch(Store* store) {
  TROUPE_ASSIGN_OR_RETURN(const uint64_t last, ReadEpoch(*store, kLeaderEpoch));
  CatalogBatch batch;
  batch.PutLeaderEpoch(last + 1);
  WriteBatch writes = batch.batch();
  TROUPE_RETURN_IF_ERROR(RekeyRequests(*store, &writes));
  TROUPE_RETURN_IF_ERROR(store->Write(writes, Durability::kSynced));
  return last + 1;
}

Status WriteCatalog(const CatalogBatch& batch, Store* store) {
  if (batch.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const WriteBatch writes, batch.ForStore(*store));
  return store->Write(writes, Durability::kSynced);
}

StatusOr<std::vector<v1::StepEvent>> ReadHistory(const Store& store, const std::string& id,
                                                 int64_t from_step, size_t limit) {
  std::vector<v1::StepEvent> rows;
  const uint64_t from = from_step < 0 ? 0 : static_cast<uint64_t>(from_step);
  Status status;
  TROUPE_RETURN_IF_ERROR(store.Scan(Numbered("history", id, from), PrefixEnd("history/" + id + "/"),
                                    [&](std::string_view key, std::string_view value) {
                                      if (rows.size() >= limit) return false;
                                      v1::StepEvent row;
                                      status = Decode(key, value, &row);
                                      if (!status.ok()) return false;
                                      rows.push_back(std::move(row));
                                      return true;
                                    }));
  TROUPE_RETURN_IF_ERROR(status);
  return rows;
}

StatusOr<std::vector<v1::JobEvent>> ReadEvents(const Store& store, const std::string& id) {
  std::vector<v1::JobEvent> events;
  TROUPE_RETURN_IF_ERROR(ReadKind<v1::JobEvent>(
      store, "event/" + id + "/", false,
      [&](const KeyParts&, v1::JobEvent event) { events.push_back(std::move(event)); }));
  return events;
}

}  // namespace troupe
