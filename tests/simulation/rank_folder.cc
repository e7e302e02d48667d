// The rank model verifies the folder of checkpoints, as worker/rank/folder_proof.h does.
#include "tests/simulation/rank_model.h"

namespace troupe::simulation {
namespace {

// FOLDER of "FOLDER/JOB/ATTEMPT".
std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/', path.rfind('/') - 1));
}

bool IsFirstOfItsWorker(const v1::Plan& plan, int rank) {
  for (int other = 0; other < rank; ++other) {
    if (plan.ranks(other).worker() == plan.ranks(rank).worker()) return false;
  }
  return true;
}

}  // namespace

Status RankModel::CheckFolder(const std::string& path, const std::string& id) const {
  if (world_.bugs.trust_folders) return OkStatus();
  return world_.storage.CheckFolderId(worker_, FolderOf(path), id);
}

Status RankModel::BeginFolderProof(v1::RankAddress& address) {
  const v1::StartRanks& start = begin_.start();
  const std::string& folder = start.spec().checkpoint().folder();
  if (folder.empty() || world_.bugs.trust_folders) return OkStatus();
  Storage& storage = world_.storage;
  if (rank_ == 0 && start.folder_id().empty()) {
    TROUPE_ASSIGN_OR_RETURN(*address.mutable_folder_id(),
                            storage.EstablishFolderId(worker_, folder, fmt::format("{}", number_)));
  } else {
    TROUPE_RETURN_IF_ERROR(storage.CheckFolderId(worker_, folder, start.folder_id()));
    if (rank_ == 0) address.set_folder_id(start.folder_id());
  }
  folder_id_ = address.folder_id();
  if (!IsFirstOfItsWorker(start.plan(), rank_)) return OkStatus();
  const std::string token =
      fmt::format(".start-{}-epoch-{}-rank-{}-{}", group_.job, group_.epoch, rank_, number_);
  TROUPE_RETURN_IF_ERROR(storage.PutToken(worker_, folder, token));
  address.set_folder_token(token);
  return OkStatus();
}

Status RankModel::FinishFolderProof(const v1::AddressBook& book) {
  const v1::StartRanks& start = begin_.start();
  const std::string& folder = start.spec().checkpoint().folder();
  if (folder.empty() || world_.bugs.trust_folders) return OkStatus();
  for (const v1::RankAddress& address : book.addresses()) {
    const std::string& token = address.folder_token();
    const bool concerns = rank_ == 0 || address.rank() == 0;
    if (token.empty() || !concerns || world_.storage.SeesToken(worker_, folder, token)) continue;
    const std::string& other = start.plan().ranks(address.rank()).worker();
    if (rank_ == 0) blamed_worker_ = other;
    return FailedPrecondition("{} does not see in {} what {} has put there", worker_, folder,
                              other);
  }
  return OkStatus();
}

}  // namespace troupe::simulation
