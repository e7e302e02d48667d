#include "worker/rank/rank_data.h"

#include <string>
#include <utility>

#include "base/failure_cause.h"
#include "data/job_data.h"
#include "worker/executor/folder_fault.h"

namespace troupe {
namespace {

std::string NamedHost(const v1::StartRanks& start, int rank) {
  return "host " + start.plan().ranks(rank).host();
}

Status WithCauseOfData(const Status& status, const std::string& host) {
  if (!AttachedCause(status).empty()) return status;
  const Status away = FolderFault(status, KeyToBlame(status));
  return away.ok() ? WithCause(Annotate(status, host), cause::kData) : Annotate(away, host);
}

Status Refuse(const Status& differ, std::string_view advice) {
  if (differ.ok()) return differ;
  return WithCause(FailedPrecondition("{}; {}", Message(differ), advice), cause::kData);
}

}  // namespace

StatusOr<RankData> OpenRankData(FileSystem& files, const v1::StartRanks& start, int rank) {
  const std::string host = NamedHost(start, rank);
  StatusOr<Dataset> dataset = Dataset::Open(files, MakeDatasetOptions(start.spec()));
  if (!dataset.ok()) return WithCauseOfData(dataset.status(), host);
  v1::DataIdentity identity = IdentityOf(*dataset);
  if (start.has_data()) {
    TROUPE_RETURN_IF_ERROR(
        Refuse(CheckSameData({start.data(), "the job began with"}, {identity, host + " has"}),
               "put the former data back and resume the job, or train on these in a new job with "
               "checkpoint.initial_load"));
  }
  return RankData{*std::move(dataset), std::move(identity)};
}

Status CheckDataOfRank0(const v1::DataIdentity& own, const std::vector<v1::RankAddress>& addresses,
                        const v1::StartRanks& start, int rank) {
  if (rank == 0 || addresses.empty() || !addresses.front().has_data()) return OkStatus();
  return Refuse(
      CheckSameData({addresses.front().data(), NamedHost(start, 0) + " of rank 0 has"},
                    {own, fmt::format("{} of rank {} has", NamedHost(start, rank), rank)}),
      "the hosts of a job must have the same data");
}

}  // namespace troupe
