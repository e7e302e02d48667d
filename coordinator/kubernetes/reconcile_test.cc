#include "coordinator/kubernetes/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace troupe {
namespace {

TroupeJob NewObject() {
  return {.name = "a", .uid = "u", .generation = 1, .finalizers = {std::string(kFinalizer)}};
}

JobFacts RunningFacts() {
  return {.name = "a",
          .state = v1::JOB_STATE_RUNNING,
          .has_ranks = true,
          .has_folder = true,
          .step = 3,
          .steps = 9};
}

JobFacts FactsIn(v1::JobState state) {
  JobFacts job = RunningFacts();
  job.state = state;
  job.has_ranks = false;
  return job;
}

JobFacts RemovedFacts() { return {.name = "a", .is_removed = true}; }

// The object after its status was written as decided.
TroupeJob RecordedObject(TroupeJob object, const JobFacts* job) {
  object.status = Reconcile(object, job, nullptr).status;
  return object;
}

struct ActRow {
  std::string name;
  TroupeJob object;
  std::optional<JobFacts> job;
  Act act;
  std::string state;
  bool checkpoint = false;
};

TroupeJob Changed(TroupeJob object, void (*change)(TroupeJob&)) {
  change(object);
  return object;
}

void SetSuspend(TroupeJob& object) { object.suspend = true; }
void SetDeleted(TroupeJob& object) { object.is_deleted = true; }
void SetDeletedAndAborts(TroupeJob& object) { object.is_deleted = object.aborts = true; }
void DropFinalizer(TroupeJob& object) { object.finalizers.clear(); }

std::vector<ActRow> RowsOfWish() {
  const JobFacts running = RunningFacts();
  const JobFacts cancelled = FactsIn(v1::JOB_STATE_CANCELLED);
  JobFacts stopping = RunningFacts();
  stopping.is_stopping = true;
  JobFacts no_folder = RunningFacts();
  no_folder.has_folder = false;
  const TroupeJob recorded = RecordedObject(NewObject(), &running);
  const TroupeJob suspended = RecordedObject(Changed(recorded, SetSuspend), &running);
  const TroupeJob resumed = Changed(suspended, [](TroupeJob& object) { object.suspend = false; });
  const TroupeJob finished = [] {
    const JobFacts succeeded = FactsIn(v1::JOB_STATE_SUCCEEDED);
    return RecordedObject(NewObject(), &succeeded);
  }();
  const auto released = [](TroupeJob object) { return Changed(std::move(object), DropFinalizer); };
  return {
      {"new", Changed(NewObject(), DropFinalizer), {}, Act::kAddFinalizer, "PENDING"},
      {"with a finalizer", NewObject(), {}, Act::kCreate, "PENDING"},
      {"created", NewObject(), FactsIn(v1::JOB_STATE_QUEUED), Act::kNone, "QUEUED"},
      {"running", recorded, running, Act::kNone, "RUNNING"},
      {"the job was deleted by hand", recorded, {}, Act::kRemoveFinalizer, "DELETED"},
      {"the job was deleted by hand before its name was recorded", NewObject(), RemovedFacts(),
       Act::kRemoveFinalizer, "DELETED"},
      {"deleted, and its job before its name was recorded", Changed(NewObject(), SetDeleted),
       RemovedFacts(), Act::kRemoveFinalizer, "DELETED"},
      {"suspended, and its job deleted before its name was recorded",
       Changed(NewObject(), SetSuspend), RemovedFacts(), Act::kRemoveFinalizer, "DELETED"},
      {"the ended job left the catalog", finished, {}, Act::kRemoveFinalizer, "SUCCEEDED"},
      {"ended and released", released(finished), {}, Act::kNone, "SUCCEEDED"},
      {"cancelled by hand", recorded, cancelled, Act::kRemoveFinalizer, "CANCELLED"},
      {"resumed by hand after its end", released(recorded), running, Act::kAddFinalizer, "RUNNING"},
      {"suspended before it is created",
       Changed(NewObject(), SetSuspend),
       {},
       Act::kRemoveFinalizer,
       "SUSPENDED"},
      {"suspended before it is created, without the finalizer",
       released(Changed(NewObject(), SetSuspend)),
       {},
       Act::kNone,
       "SUSPENDED"},
      {"suspended", Changed(recorded, SetSuspend), running, Act::kCancel, "RUNNING", true},
      {"suspended without a folder", Changed(recorded, SetSuspend), no_folder, Act::kCancel,
       "RUNNING", true},
      {"suspended while it waits", Changed(recorded, SetSuspend), FactsIn(v1::JOB_STATE_QUEUED),
       Act::kCancel, "QUEUED"},
      {"stopping", Changed(recorded, SetSuspend), stopping, Act::kNone, "RUNNING"},
      {"stopped", suspended, cancelled, Act::kRemoveFinalizer, "SUSPENDED"},
      {"stopped and released", released(suspended), cancelled, Act::kNone, "SUSPENDED"},
      {"suspended after its end", Changed(recorded, SetSuspend), FactsIn(v1::JOB_STATE_FAILED),
       Act::kRemoveFinalizer, "FAILED"},
      {"resumed while it stops", resumed, stopping, Act::kNone, "RUNNING"},
      {"resumed", resumed, cancelled, Act::kResume, "SUSPENDED"},
      {"resumed without the finalizer", released(resumed), cancelled, Act::kAddFinalizer,
       "SUSPENDED"},
      {"resumed by hand", resumed, running, Act::kNone, "RUNNING"},
  };
}

std::vector<ActRow> RowsOfDeletion() {
  const JobFacts running = RunningFacts();
  const JobFacts cancelled = FactsIn(v1::JOB_STATE_CANCELLED);
  JobFacts stopping = RunningFacts();
  stopping.is_stopping = true;
  JobFacts no_folder = RunningFacts();
  no_folder.has_folder = false;
  const TroupeJob recorded = RecordedObject(NewObject(), &running);
  return {
      {"deleted", Changed(recorded, SetDeleted), running, Act::kCancel, "RUNNING", true},
      {"deleted and aborted", Changed(recorded, SetDeletedAndAborts), running, Act::kCancel,
       "RUNNING"},
      {"aborted while it stops", Changed(recorded, SetDeletedAndAborts), stopping, Act::kCancel,
       "RUNNING"},
      {"deleted while it stops", Changed(recorded, SetDeleted), stopping, Act::kNone, "RUNNING"},
      {"deleted without a folder", Changed(recorded, SetDeleted), no_folder, Act::kCancel,
       "RUNNING"},
      {"deleted after its end", Changed(recorded, SetDeleted), cancelled, Act::kDelete,
       "CANCELLED"},
      {"deleted after its last checkpoint could not be written", Changed(recorded, SetDeleted),
       FactsIn(v1::JOB_STATE_FAILED), Act::kDelete, "FAILED"},
      {"deleted with its job", Changed(recorded, SetDeleted), {}, Act::kRemoveFinalizer, "DELETED"},
      {"deleted before it was created",
       Changed(NewObject(), SetDeleted),
       {},
       Act::kRemoveFinalizer,
       "PENDING"},
      {"deleted after its end, without the finalizer",
       Changed(Changed(recorded, SetDeleted), DropFinalizer), cancelled, Act::kDelete, "CANCELLED"},
      {"deleted without the finalizer",
       Changed(Changed(NewObject(), SetDeleted), DropFinalizer),
       {},
       Act::kNone,
       "PENDING"},
  };
}

std::vector<ActRow> ActRows() {
  std::vector<ActRow> rows = RowsOfWish();
  for (const ActRow& row : RowsOfDeletion()) rows.push_back(row);
  return rows;
}

TEST(Reconcile, EveryStateHasItsAct) {
  for (const ActRow& row : ActRows()) {
    SCOPED_TRACE(row.name);
    const Decision decision = Reconcile(row.object, row.job ? &*row.job : nullptr, nullptr);
    EXPECT_EQ(static_cast<int>(decision.act), static_cast<int>(row.act));
    EXPECT_EQ(decision.status.state, row.state);
    EXPECT_EQ(decision.checkpoint, row.checkpoint);
    EXPECT_EQ(decision.status.conditions.size(), 3u);
  }
}

TEST(Reconcile, NeverCreatesAJobForAnObjectThatHadOne) {
  for (const ActRow& row : ActRows()) {
    if (row.object.status.job_name.empty()) continue;
    EXPECT_NE(Reconcile(row.object, nullptr, nullptr).act, Act::kCreate) << row.name;
  }
}

TEST(Reconcile, TheNameOfAJobThatWasRemovedIsRecorded) {
  const JobFacts removed = RemovedFacts();
  const Refusal used{"request_id is u, which created job a, and that was removed", true};
  const Decision decision = Reconcile(NewObject(), &removed, &used);
  EXPECT_EQ(decision.status.job_name, "a");
  EXPECT_TRUE(decision.status.Holds(kAcceptedCondition));
}

TEST(Reconcile, ARejectionIsAConditionWithItsText) {
  const Refusal refusal{"spec.job:1: unknown key trainig", true};
  const Decision decision = Reconcile(NewObject(), nullptr, &refusal);
  EXPECT_EQ(decision.status.state, "REJECTED");
  const Condition* const accepted = decision.status.Find(kAcceptedCondition);
  ASSERT_NE(accepted, nullptr);
  EXPECT_EQ(accepted->status, "False");
  EXPECT_EQ(accepted->reason, "Rejected");
  EXPECT_EQ(accepted->message, refusal.message);
  const Refusal quota{"too many jobs", false};
  EXPECT_EQ(Reconcile(NewObject(), nullptr, &quota).status.state, "PENDING");
}

TEST(Reconcile, ARejectedObjectHoldsNothingUntilItIsTriedAgain) {
  Refusal refusal{.message = "no such data", .is_final = true, .waits = true};
  TroupeJob object = NewObject();
  EXPECT_EQ(Reconcile(object, nullptr, &refusal).act, Act::kRemoveFinalizer);
  DropFinalizer(object);
  EXPECT_EQ(Reconcile(object, nullptr, &refusal).act, Act::kNone);
  refusal.waits = false;
  EXPECT_EQ(Reconcile(object, nullptr, &refusal).act, Act::kAddFinalizer);
  EXPECT_EQ(Reconcile(NewObject(), nullptr, &refusal).act, Act::kCreate);
}

TEST(Reconcile, AJobThatMovesIsMovingAndStatesTheReason) {
  JobFacts job = FactsIn(v1::JOB_STATE_RECOVERING);
  job.is_moving = true;
  job.move_reason = "leaves worker-1, which is draining (SIGTERM), after step 3";
  const TroupeJobStatus moving = Reconcile(NewObject(), &job, nullptr).status;
  EXPECT_EQ(moving.state, "MOVING");
  EXPECT_EQ(moving.Find(kFinishedCondition)->message, job.move_reason);
  job.waiting_for = "2 devices";
  EXPECT_EQ(Reconcile(NewObject(), &job, nullptr).status.Find(kFinishedCondition)->message,
            job.move_reason + "; waits for 2 devices");
  job.is_moving = false;
  EXPECT_EQ(Reconcile(NewObject(), &job, nullptr).status.state, "RECOVERING");
}

TEST(Reconcile, KeysThatWereDroppedAreNamedAlsoOfAnObjectWithAJob) {
  const JobFacts running = RunningFacts();
  TroupeJob object = NewObject();
  object.dropped = {"spec.job.trainig"};
  const TroupeJobStatus status = Reconcile(object, &running, nullptr).status;
  EXPECT_TRUE(status.Holds(kAcceptedCondition));
  EXPECT_EQ(status.Find(kAcceptedCondition)->message,
            "the job is a; the API server has dropped spec.job.trainig, which its definition does "
            "not have");
}

TEST(Reconcile, KeysThatWereDroppedAreNamedBeforeASuspendedObjectIsResumed) {
  TroupeJob object = Changed(NewObject(), SetSuspend);
  EXPECT_EQ(Reconcile(object, nullptr, nullptr).status.Find(kSuspendedCondition)->message,
            "the job is created when it is resumed");
  object.dropped = {"spec.job.trainig"};
  const TroupeJobStatus status = Reconcile(object, nullptr, nullptr).status;
  const Condition* const accepted = status.Find(kAcceptedCondition);
  EXPECT_EQ(accepted->status, "Unknown");
  EXPECT_EQ(accepted->message,
            "no job was created yet; the API server has dropped spec.job.trainig, which its "
            "definition does not have");
  EXPECT_EQ(status.Find(kSuspendedCondition)->message,
            "the job is rejected when it is resumed: the API server has dropped spec.job.trainig, "
            "which its definition does not have");
}

// An older `kubectl describe` prints them as they are.
TEST(Reconcile, TextsThatOthersChoseAreShownInOneLine) {
  const std::string hostile = "red\x1b[31m\nforged\u202e";
  const std::string shown = "red\\u001b[31m\\nforged\\u202e";
  JobFacts failed = FactsIn(v1::JOB_STATE_FAILED);
  failed.failure = "RANK_FAILED on worker-0: " + hostile;
  failed.last_checkpoint = "/c/" + hostile;
  const TroupeJob recorded = RecordedObject(NewObject(), &failed);
  EXPECT_EQ(recorded.status.Find(kFinishedCondition)->message, "RANK_FAILED on worker-0: " + shown);
  EXPECT_EQ(recorded.status.last_checkpoint, "/c/" + shown);
  EXPECT_FALSE(Differs(Reconcile(recorded, &failed, nullptr).status, recorded.status));

  JobFacts moving = RunningFacts();
  moving.is_moving = true;
  moving.move_reason = hostile;
  moving.waiting_for = hostile;
  EXPECT_EQ(Reconcile(NewObject(), &moving, nullptr).status.Find(kFinishedCondition)->message,
            shown + "; waits for " + shown);

  const Refusal refusal{hostile, true};
  EXPECT_EQ(Reconcile(NewObject(), nullptr, &refusal).status.Find(kAcceptedCondition)->message,
            shown);

  // The status of an older coordinator, whose ended job has left the catalog.
  TroupeJob ended = recorded;
  ended.status.conditions[2].message = hostile;
  EXPECT_EQ(Reconcile(ended, nullptr, nullptr).status.Find(kFinishedCondition)->message, shown);
}

TEST(Reconcile, SuspensionAndCreationAreRecordedBeforeTheyHappen) {
  const JobFacts running = RunningFacts();
  const TroupeJob recorded = RecordedObject(NewObject(), &running);
  EXPECT_TRUE(Reconcile(NewObject(), nullptr, nullptr).record_first);
  const Decision decision = Reconcile(Changed(recorded, SetSuspend), &running, nullptr);
  EXPECT_TRUE(decision.record_first);
  EXPECT_TRUE(decision.status.Holds(kSuspendedCondition));
}

TEST(Reconcile, ASuspendedObjectWhoseJobIsGoneIsNotCreatedWhenItIsResumed) {
  const JobFacts running = RunningFacts();
  const TroupeJob recorded = RecordedObject(NewObject(), &running);
  const Decision decision = Reconcile(Changed(recorded, SetSuspend), nullptr, nullptr);
  const Condition* const suspended = decision.status.Find(kSuspendedCondition);
  ASSERT_NE(suspended, nullptr);
  EXPECT_EQ(suspended->reason, "Deleted");
}

TEST(Reconcile, FiguresOfAStepThatWasReadBeforeAreKept) {
  JobFacts job = RunningFacts();
  job.loss = 2.5;
  job.mfu = 0.4123456;
  TroupeJob object = RecordedObject(NewObject(), &job);
  EXPECT_EQ(object.status.loss, "2.5");
  EXPECT_EQ(object.status.mfu, "0.4123");
  job.loss.reset();
  job.mfu.reset();
  EXPECT_EQ(Reconcile(object, &job, nullptr).status.loss, "2.5");
  job.step = 4;
  EXPECT_EQ(Reconcile(object, &job, nullptr).status.loss, "");
  job.loss = -std::nan("");
  EXPECT_EQ(Reconcile(object, &job, nullptr).status.loss, "NaN");
}

TEST(Reconcile, FiguresAloneAreNoChangeOfState) {
  JobFacts job = RunningFacts();
  const TroupeJobStatus before = Reconcile(NewObject(), &job, nullptr).status;
  job.step = 4;
  job.last_checkpoint = "/c/4";
  const TroupeJobStatus after = Reconcile(NewObject(), &job, nullptr).status;
  EXPECT_TRUE(Differs(before, after));
  EXPECT_FALSE(DiffersInState(before, after));
  job.state = v1::JOB_STATE_RECOVERING;
  EXPECT_TRUE(DiffersInState(before, Reconcile(NewObject(), &job, nullptr).status));
}

}  // namespace
}  // namespace troupe
