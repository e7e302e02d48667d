// The part of a page that shows a receipt. Pure.
#ifndef TROUPE_REPORT_RECEIPT_DRAWING_H_
#define TROUPE_REPORT_RECEIPT_DRAWING_H_

#include "report/job_report.h"
#include "report/markup.h"

namespace troupe {

// Draws the rows of the report's receipt in groups that can be folded, the first of which is open.
// Each group has an id, "receipt-plan", that stays the same. MFU that is absent because a peak is
// not known is one line, which is left out where DrawStepCharts draws it.
void DrawReceipt(const JobReport& report, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_RECEIPT_DRAWING_H_
