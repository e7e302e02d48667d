// Proves, at the start of a group epoch, that the hosts of a job share its checkpoint folder.
//
// The first rank of each worker writes a token of this epoch into the folder. The address book has
// the names of all tokens; then rank 0 looks for the tokens of all other workers, and these look
// for rank 0's. If all are seen, every rank writes where rank 0 reads and vice versa.
//
// Not thread-safe.
#ifndef TROUPE_WORKER_RANK_FOLDER_PROOF_H_
#define TROUPE_WORKER_RANK_FOLDER_PROOF_H_

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/write/patience.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

class FolderProof {
 public:
  // `files` and `start` must outlive the object.
  FolderProof(FileSystem& files, const v1::StartRanks& start, int rank);

  // Checks that the folder has the identity of the job's folder (rank 0 sets it if none is known
  // yet), writes this worker's token, and puts both into `address`. With cause STORAGE it returns
  // UNAVAILABLE if it is a different folder, or is full and has no identity yet, and
  // FAILED_PRECONDITION if it cannot be written. A full folder with an identity is no error: Begin
  // logs a warning and omits the token.
  Status Begin(v1::RankAddress* address);

  // Looks for the other workers' tokens and for the identity that rank 0 reported. Returns
  // FAILED_PRECONDITION with cause STORAGE, which names both hosts, if a token is not seen.
  Status Finish(const std::vector<v1::RankAddress>& addresses, const Patience& patience);

  // The worker whose host caused the error; empty: this rank's.
  const std::string& blamed_worker() const { return blamed_worker_; }

  // Removes the tokens of all workers. REQUIRES: every rank has finished.
  void Clean();
  // Removes this rank's own token if it still exists, because the epoch ends.
  void Withdraw();

 private:
  bool is_first_of_worker(int rank) const;
  std::string Whom(int rank) const;
  std::string OwnHost() const;
  Status Put(v1::RankAddress* address);

  FileSystem& files_;
  const v1::StartRanks& start_;
  const int rank_;
  const std::string folder_;         // empty: the job has none
  const std::string job_;            // its id
  std::string token_;                // that this rank has put
  std::vector<std::string> tokens_;  // that the workers of the group have put, empty ones too
  std::string blamed_worker_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FOLDER_PROOF_H_
