// The coordinator's durable state: the keys of the store and everything that a restart needs.
//
//   leader_epoch                       decimal
//   epoch_floor                        decimal: the highest group epoch of any job that was deleted
//   job/ID                             JobRecord
//   spec/ID                            JobSpec, defaults applied
//   plan/ID                            Plan, frozen
//   smaller/ID                         SmallerLayout, while the job's plan uses one
//   group/ID                           GroupRecord of the newest group
//   receipt/ID                         ReceiptTally, as of the history
//   data/ID                            DataIdentity, once the ranks have run
//   images/ID                          JobImages, while newer than every commit
//   lease/WORKER/DEVICE                LeaseRecord
//   blame/WORKER                       BlameRecord
//   drain/WORKER                       DrainRecord, while an operator drains the worker
//   history/ID/STEP                    StepEvent, the last one of that step
//   event/ID/NUMBER                    JobEvent
//   checkpoint/ID/ATTEMPT              CheckpointRecord
//   request/REQUEST_KEY                job id (RequestKey)
//   request_digest/REQUEST_KEY         RequestDigest of the request; absent in old catalogs
//   used_request/REQUEST_KEY           UsedRequestRecord, once the job has been removed
//   join_token/ID                      JoinTokenRecord (coordinator/access/join_ledger.h)
//   user_token/ID                      UserTokenRecord
//   revocation/serial/SERIAL           Revocation
//   revocation/identity/URI            Revocation
//
// Numbers in keys have 16 hexadecimal digits, so that the keys sort numerically.
#ifndef TROUPE_COORDINATOR_STATE_CATALOG_H_
#define TROUPE_COORDINATOR_STATE_CATALOG_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/store/store.h"
#include "troupe/v1/access.pb.h"
#include "troupe/v1/catalog.pb.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/data.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Writes that become durable together or not at all, in the order in which they were put.
class CatalogBatch {
 public:
  void PutLeaderEpoch(uint64_t epoch);
  void PutEpochFloor(uint64_t epoch);
  void PutJob(const v1::JobRecord& record);
  void PutSpec(const std::string& id, const v1::JobSpec& spec);
  void PutPlan(const std::string& id, const v1::Plan& plan);
  void PutSmallerLayout(const std::string& id, const v1::SmallerLayout& layout);
  void DeleteSmallerLayout(const std::string& id);
  void PutGroup(const std::string& id, const v1::GroupRecord& group);
  void PutTally(const std::string& id, const v1::ReceiptTally& tally);
  void PutData(const std::string& id, const v1::DataIdentity& data);
  void PutImages(const std::string& id, const v1::JobImages& images);
  void DeleteImages(const std::string& id);
  void PutLease(const std::string& worker, int32_t device, const v1::LeaseRecord& lease);
  void DeleteLease(const std::string& worker, int32_t device);
  void PutBlame(const v1::BlameRecord& record);
  void DeleteBlame(const std::string& worker);
  void PutDrain(const v1::DrainRecord& record);
  void DeleteDrain(const std::string& worker);
  void PutStep(const std::string& id, const v1::StepEvent& step);
  void DeleteStep(const std::string& id, int64_t step);
  void PutEvent(const std::string& id, uint64_t number, const v1::JobEvent& event);
  void DeleteEvent(const std::string& id, uint64_t number);
  void PutCheckpoint(const v1::CheckpointRecord& record);
  void DeleteCheckpoint(const std::string& id, int64_t attempt);
  void PutRequest(const std::string& request_key, const std::string& id, const std::string& digest);
  void DeleteRequest(const std::string& request_key);
  void PutUsedRequest(const std::string& request_key, const v1::UsedRequestRecord& record);
  void DeleteUsedRequest(const std::string& request_key);
  void PutUserToken(const v1::UserTokenRecord& record);
  void DeleteUserToken(const std::string& id);
  void PutRevocation(const v1::Revocation& revocation);
  // Deletes every row of the job that is stored or was put before; rows put later are kept. The
  // job's requests are not among its rows.
  void DeleteJob(const std::string& id) { deleted_jobs_.push_back({batch_.changes().size(), id}); }

  bool empty() const { return batch_.empty() && deleted_jobs_.empty(); }
  // Returns the rows put and deleted individually.
  const WriteBatch& batch() const { return batch_; }
  // Appends the writes of `later`.
  void Append(const CatalogBatch& later);
  // Returns the writes to apply to a store with the contents of `store`; this resolves DeleteJob.
  StatusOr<WriteBatch> ForStore(const Store& store) const;

 private:
  struct DeletedJob {
    size_t position = 0;  // number of changes in batch_ that precede it
    std::string id;
  };
  WriteBatch batch_;
  std::vector<DeletedJob> deleted_jobs_;
};

// Returns the key under which the request's id is kept: each namespace has ids of its own. It is
// the id in the namespace "default", unless it has a slash, and else "NAMESPACE/ID".
std::string RequestKey(const v1::CreateJobRequest& request);

// Returns the digest of a CreateJobRequest, without its request id.
std::string RequestDigest(const v1::CreateJobRequest& request);

struct CatalogJob {
  v1::JobRecord record;
  v1::JobSpec spec;
  v1::Plan plan;
  std::optional<v1::SmallerLayout> smaller;
  v1::GroupRecord group;
  v1::ReceiptTally tally;
  std::optional<v1::DataIdentity> data;
  v1::JobImages images;
  std::map<int64_t, v1::CheckpointRecord> checkpoints;  // by attempt
  std::optional<v1::StepEvent> last_step;  // that of record.step(), if the history has it
};

// All of the catalog except history and events, which are read on demand but for the last steps,
// and AccessRecords.
struct CatalogImage {
  uint64_t leader_epoch = 0;
  uint64_t epoch_floor = 0;
  std::map<std::string, CatalogJob> jobs;                             // by id
  std::map<std::pair<std::string, int32_t>, v1::LeaseRecord> leases;  // by worker, device
  std::map<std::string, v1::BlameRecord> blame;                       // by worker
  std::map<std::string, v1::DrainRecord> drains;                      // by worker
  std::map<std::string, std::string> requests;                        // by RequestKey: job id
  std::map<std::string, std::string> request_digests;                 // by RequestKey
  std::map<std::string, v1::UsedRequestRecord> used_requests;         // by RequestKey
};

// Returns DATA_LOSS with the key's name if a value does not decode.
StatusOr<CatalogImage> ReadCatalog(const Store& store);

// The part of the catalog that decides who may call.
struct AccessRecords {
  std::vector<v1::UserTokenRecord> tokens;
  std::vector<v1::Revocation> revocations;
};

// Returns DATA_LOSS with the key's name if a value does not decode.
StatusOr<AccessRecords> ReadAccessRecords(const Store& store);

// Increments the leader epoch durably and returns it. Requests that an older coordinator recorded
// under their ids alone get their RequestKey. REQUIRES: called once, before anything is served.
StatusOr<uint64_t> AdvanceLeaderEpoch(Store* store);

// Makes `batch` durable.
Status WriteCatalog(const CatalogBatch& batch, Store* store);

// Returns at most `limit` rows of the job's history, starting at `from_step`, ordered by step.
StatusOr<std::vector<v1::StepEvent>> ReadHistory(const Store& store, const std::string& id,
                                                 int64_t from_step, size_t limit);
// Returns the job's stored events, oldest first.
StatusOr<std::vector<v1::JobEvent>> ReadEvents(const Store& store, const std::string& id);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_CATALOG_H_
