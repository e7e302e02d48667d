#include "coordinator/history/step_figures.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;

// Sets every number of the figures to `value`.
v1::StepFigures AllSetTo(double value) {
  v1::StepFigures figures;
  const google::protobuf::Descriptor& descriptor = *v1::StepFigures::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    if (descriptor.field(i)->is_repeated()) continue;
    figures.GetReflection()->SetDouble(&figures, descriptor.field(i), value);
  }
  return figures;
}

TEST(StepFigures, EveryNumberIsAnOptionalDouble) {
  const google::protobuf::Descriptor& descriptor = *v1::StepFigures::descriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const FieldDescriptor& field = *descriptor.field(i);
    if (field.number() == v1::StepFigures::kCommunicationFieldNumber) continue;
    EXPECT_EQ(field.cpp_type(), FieldDescriptor::CPPTYPE_DOUBLE) << field.name();
    EXPECT_TRUE(field.has_presence()) << field.name();
  }
}

TEST(StepFigures, MeansCoverEveryNumber) {
  v1::StepFigures sums;
  AddFigures(AllSetTo(1), &sums);
  AddFigures(AllSetTo(5), &sums);
  EXPECT_EQ(MeanFigures(sums, 2).SerializeAsString(), AllSetTo(3).SerializeAsString());
}

TEST(StepFigures, WhatNoRankMeasuredIsAbsentFromTheMean) {
  v1::StepFigures step, sums;
  step.set_bubble_ratio(0.5);
  AddFigures(step, &sums);
  AddFigures({}, &sums);
  const v1::StepFigures mean = MeanFigures(sums, 2);
  EXPECT_EQ(mean.bubble_ratio(), 0.25);
  EXPECT_FALSE(mean.has_data_wait_seconds());
}

TEST(StepFigures, CommunicationIsAddedByPurpose) {
  v1::StepFigures sums;
  for (const char* purpose : {"gradient", "tensor", "gradient"}) {
    v1::StepFigures step;
    v1::CommunicationSeconds& entry = *step.add_communication();
    entry.set_purpose(purpose);
    entry.set_exposed(1);
    entry.set_total(2);
    AddFigures(step, &sums);
  }
  const v1::StepFigures mean = MeanFigures(sums, 2);
  ASSERT_EQ(mean.communication_size(), 2);
  EXPECT_EQ(mean.communication(0).purpose(), "gradient");
  EXPECT_EQ(mean.communication(0).exposed(), 1);
  EXPECT_EQ(mean.communication(0).total(), 2);
  EXPECT_EQ(mean.communication(1).exposed(), 0.5);
}

}  // namespace
}  // namespace troupe
