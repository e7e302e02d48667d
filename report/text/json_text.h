// Converts messages of the API to the JSON that `-o json` prints. Names and shapes are a contract.
// Pure.
#ifndef TROUPE_REPORT_TEXT_JSON_TEXT_H_
#define TROUPE_REPORT_TEXT_JSON_TEXT_H_

#include <string>

#include "plan/job/message_json.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns a text such as "RUNNING".
std::string StateText(v1::JobState state);
// The state for people: kMovingState while the job leaves workers that are draining.
inline constexpr char kMovingState[] = "MOVING";
std::string StateText(const v1::Job& job);
// Whether a job of this state has ended: it runs no more, unless it is resumed.
bool IsEndState(v1::JobState state);

Json JobSummaryToJson(const v1::Job& job);  // one entry of `list`
Json JobToJson(const v1::Job& job);         // `describe`
Json CheckpointToJson(const v1::CheckpointRecord& checkpoint);
Json ManifestToSummaryJson(const v1::CheckpointManifest& manifest, const std::string& path);
Json WorkerToJson(const v1::WorkerStatus& worker);
// Returns a text such as "set aside since 2026-11-23T12:00:00Z, burn-in from 2026-11-23T12:05:00Z:
// RANK_CRASHED: …".
std::string SetAsideText(const v1::SetAside& part);

// Returns a double with 17 significant digits, which identify it exactly; "NaN", "Infinity" and
// "-Infinity" are quoted.
std::string ExactNumber(double value);

// These return one line of `watch -o json`, without a newline.
std::string StepToJsonLine(const v1::StepEvent& step);
std::string EventToJsonLine(const v1::JobEvent& event);
std::string EndToJsonLine(v1::JobState state);

// Returns compact text on one line, with invalid UTF-8 replaced.
std::string Dump(const Json& json);

}  // namespace troupe

#endif  // TROUPE_REPORT_TEXT_JSON_TEXT_H_
