// The data of a rank: opened at each start, and the same that the job began with and that the
// ranks of other hosts have.
//
// Rank 0 reports the identity of its data with its address. Until the job has one, the address book
// has that of rank 0, and each rank compares its own with it. Once the job has run, StartRanks has
// the job's.
#ifndef TROUPE_WORKER_RANK_RANK_DATA_H_
#define TROUPE_WORKER_RANK_RANK_DATA_H_

#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/data_identity.h"
#include "data/dataset.h"
#include "interop/base_weights.h"
#include "plan/job/job_files.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct RankData {
  Dataset dataset;
  v1::DataIdentity identity;
};

// Opens the data of the job for `rank`. With cause STORAGE, which is waited for as for an absent
// checkpoint folder, it returns FAILED_PRECONDITION if the files do not exist here or may not be
// read, and UNAVAILABLE if they cannot be read now. With cause DATA, which is final, it returns the
// error of Dataset::Open if the files are no data for the job, and FAILED_PRECONDITION if they are
// not those that the job began with.
StatusOr<RankData> OpenRankData(FileSystem& files, const v1::StartRanks& start, int rank);

inline BaseFiles BaseFilesOf(JobFiles& files) { return {files.imports(), files.checkpoints()}; }

// Adds the identity of the model that gives the job's frozen parameters their numbers, if it has
// such. Errors as above; with cause DATA if it is not the one that the job began with.
Status IdentifyBase(const BaseFiles& files, const v1::StartRanks& start, int rank,
                    v1::DataIdentity* identity);

// An error of that model, with the host of `rank`, and with cause DATA unless it has a cause.
Status FaultOfBase(const Status& status, const v1::StartRanks& start, int rank);

// FAILED_PRECONDITION with cause DATA if the job's checkpoint names another base than `own` has.
Status CheckBaseOf(const v1::CheckpointManifest& manifest, const v1::DataIdentity& own,
                   const v1::StartRanks& start, int rank);

// Compares `own` with the identity in the address of rank 0, if it has one. FAILED_PRECONDITION
// with cause DATA names both hosts and what each has.
Status CheckDataOfRank0(const v1::DataIdentity& own, const std::vector<v1::RankAddress>& addresses,
                        const v1::StartRanks& start, int rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RANK_DATA_H_
