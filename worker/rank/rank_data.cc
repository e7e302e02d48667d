#include "worker/rank/rank_data.h"

#include <string>
#include <utility>

#include "base/failure_cause.h"
#include "data/job_data.h"
#include "worker/executor/folder_fault.h"
#include "worker/executor/frozen_weights.h"

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

Status IdentifyBase(const BaseFiles& files, const v1::StartRanks& start, int rank,
                    v1::DataIdentity* identity) {
  if (!start.plan().has_trained_parameters()) return OkStatus();
  const std::string host = NamedHost(start, rank);
  const StatusOr<BaseWeights> base = OpenBase(files, start.spec());
  if (!base.ok()) return FaultOfBase(base.status(), start, rank);
  *identity->mutable_base() = base->identity();
  if (!start.data().has_base()) return OkStatus();
  return Refuse(
      CheckSameBase(start.data().base(), "the job began with", base->identity(), host + " has"),
      "put the former files back and resume the job");
}

Status FaultOfBase(const Status& status, const v1::StartRanks& start, int rank) {
  const Status named = Annotate(status, NamedHost(start, rank));
  return AttachedCause(named).empty() ? WithCause(named, cause::kData) : named;
}

Status CheckBaseOf(const v1::CheckpointManifest& manifest, const v1::DataIdentity& own,
                   const v1::StartRanks& start, int rank) {
  if (!manifest.has_base()) return OkStatus();
  return Refuse(CheckSameBase(manifest.base(), start.restore_path() + " was trained on", own.base(),
                              NamedHost(start, rank) + " has"),
                "put the former files back and resume the job");
}

Status CheckDataOfRank0(const v1::DataIdentity& own, const std::vector<v1::RankAddress>& addresses,
                        const v1::StartRanks& start, int rank) {
  if (rank == 0 || addresses.empty() || !addresses.front().has_data()) return OkStatus();
  const v1::DataIdentity& wanted = addresses.front().data();
  const std::string wanted_by = NamedHost(start, 0) + " of rank 0 has";
  const std::string found_by = fmt::format("{} of rank {} has", NamedHost(start, rank), rank);
  TROUPE_RETURN_IF_ERROR(Refuse(CheckSameData({wanted, wanted_by}, {own, found_by}),
                                "the hosts of a job must have the same data"));
  return Refuse(CheckSameBase(wanted.base(), wanted_by, own.base(), found_by),
                "the hosts of a job must have the same files");
}

}  // namespace troupe
