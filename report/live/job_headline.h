// The headline of the pages about one job. Pure.
#ifndef TROUPE_REPORT_LIVE_JOB_HEADLINE_H_
#define TROUPE_REPORT_LIVE_JOB_HEADLINE_H_

#include <string>

#include "report/markup.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns the title of a document about the job, "RUNNING 12% lab.run1 · Troupe".
std::string TitleOf(const v1::Job& job);

// Draws the name and the state of the job, with `prefix` before the name.
void DrawJobHeading(const std::string& prefix, const v1::Job& job, Markup* page);

// Draws how far the job is.
void DrawJobProgress(const v1::Job& job, Markup* page);

// Draws why the job waits, moves or has failed, and its last failure if it has gone on after that.
void DrawJobReasons(const v1::Job& job, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_JOB_HEADLINE_H_
