#include "worker/rank/folder_proof.h"

#include "base/confined/path_root.h"
#include "base/failure_cause.h"
#include "base/log.h"
#include "checkpoint/format/folder.h"

namespace troupe {

FolderProof::FolderProof(FileSystem& files, const v1::StartRanks& start, int rank)
    : files_(files),
      start_(start),
      rank_(rank),
      folder_(start.spec().checkpoint().folder()),
      job_(start.job().substr(start.job().rfind('/') + 1)) {}

bool FolderProof::is_first_of_worker(int rank) const {
  const std::string& worker = start_.plan().ranks(rank).worker();
  for (int lower = 0; lower < rank; ++lower) {
    if (start_.plan().ranks(lower).worker() == worker) return false;
  }
  return true;
}

std::string FolderProof::Whom(int rank) const {
  const v1::RankPlacement& placement = start_.plan().ranks(rank);
  return fmt::format("rank {} on worker {} of host {}", rank, placement.worker(), placement.host());
}

std::string FolderProof::OwnHost() const { return "host " + start_.plan().ranks(rank_).host(); }

Status FolderProof::Begin(v1::RankAddress* address) {
  if (folder_.empty()) return OkStatus();
  const Status known = CheckFolderId(files_, folder_, start_.folder_id());
  if (LeavesRoot(known)) return known;
  if (!known.ok()) return WithCause(Annotate(known, OwnHost()), cause::kStorage);
  if (!is_first_of_worker(rank_)) return OkStatus();
  const Status put = Put(address);
  // No host could write it, so none is to blame.
  if (LeavesRoot(put)) return put;
  const bool is_full = SaysFolderIsFull(put);
  if (is_full && rank_ == 0 && address->folder_id().empty()) {
    return WithCause(
        Unavailable("{}: checkpoint.folder is {}, which is full and has no identity file yet; "
                    "hosts need that file to distinguish the folder from another disk in its "
                    "place: {}",
                    OwnHost(), folder_, Message(put)),
        cause::kFolderFull);
  }
  if (is_full) {
    LogWarning("rank",
               "checkpoint.folder {} is full, so other hosts cannot check that they see it: {}",
               folder_, Message(put));
    return OkStatus();
  }
  if (put.ok()) return put;
  if (SaysFolderIsReadOnly(put)) {
    return WithCause(Unavailable("{}: checkpoint.folder is {}, which is read-only at present: {}",
                                 OwnHost(), folder_, Message(put)),
                     cause::kStorage);
  }
  return WithCause(FailedPrecondition("{}: checkpoint.folder is {}, which cannot be written: {}",
                                      OwnHost(), folder_, Message(put)),
                   cause::kStorage);
}

Status FolderProof::Put(v1::RankAddress* address) {
  TROUPE_ASSIGN_OR_RETURN(const std::string random, RandomFolderId());
  if (rank_ == 0) {
    std::string id = start_.folder_id();
    if (id.empty()) {
      TROUPE_ASSIGN_OR_RETURN(id, EstablishFolderId(files_, folder_, random));
    }
    address->set_folder_id(id);
  }
  const std::string token = FolderTokenName(job_, start_.group_epoch(), rank_, random);
  TROUPE_RETURN_IF_ERROR(PutFolderToken(files_, folder_, token));
  token_ = token;
  address->set_folder_token(token);
  return OkStatus();
}

Status FolderProof::Finish(const std::vector<v1::RankAddress>& addresses,
                           const Patience& patience) {
  if (folder_.empty() || addresses.empty() || !is_first_of_worker(rank_)) return OkStatus();
  for (const v1::RankAddress& address : addresses) tokens_.push_back(address.folder_token());
  std::vector<int> wanted;
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    const bool concerns = rank_ == 0 ? rank != 0 : rank == 0;
    if (concerns && !addresses[rank].folder_token().empty())
      wanted.push_back(static_cast<int>(rank));
  }
  std::vector<int> unseen;
  const auto sees = [&](int rank) {
    const auto seen =
        SeesFolderToken(files_, folder_, addresses[static_cast<size_t>(rank)].folder_token());
    return seen.ok() && *seen;
  };
  const bool all = TryUntil(patience, [&] {
    unseen.clear();
    for (const int rank : wanted) {
      if (!sees(rank)) unseen.push_back(rank);
    }
    return unseen.empty();
  });
  if (all) return OkStatus();
  // A host that sees no other host's token is probably at fault; a host that sees some is not.
  bool sees_another = false;
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    const bool is_other =
        static_cast<int>(rank) != rank_ && !addresses[rank].folder_token().empty();
    sees_another |= is_other && sees(static_cast<int>(rank));
  }
  const int first = unseen.front();
  const bool blames_other = sees_another || (rank_ == 0 && wanted.size() == 1);
  if (blames_other) blamed_worker_ = start_.plan().ranks(first).worker();
  return WithCause(
      FailedPrecondition("checkpoint.folder is {}, which the hosts do not share: {} does not see "
                         "within {:.0f} s the file {} that {} has created there; {} to blame",
                         folder_, Whom(rank_), ToSeconds(patience.limit),
                         addresses[static_cast<size_t>(first)].folder_token(), Whom(first),
                         sees_another ? fmt::format("{} is", Whom(first)) : "either may be"),
      cause::kStorage);
}

void FolderProof::Clean() {
  if (folder_.empty()) return;
  const Status removed = RemoveFolderTokens(files_, folder_, job_, tokens_);
  if (!removed.ok()) LogWarning("rank", "remove tokens of the start: {}", ToString(removed));
}

void FolderProof::Withdraw() {
  if (token_.empty()) return;
  const Status removed = files_.Remove(JoinPath(folder_, token_));
  if (!removed.ok() && removed.code() != StatusCode::kNotFound)
    LogWarning("rank", "remove the token of the start: {}", ToString(removed));
  token_.clear();
}

}  // namespace troupe
