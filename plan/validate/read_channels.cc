#include "plan/validate/read_channels.h"

#include <fmt/format.h>

#include "model/program/channels.h"

namespace troupe {

Status ReadChannels::Add(const model::Program& program) {
  TROUPE_RETURN_IF_ERROR(model::CheckChannels(program, schema_));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ChannelForm> read, model::ChannelsRead(program));
  for (const ChannelForm& form : read) {
    if (FindForm(read_, form.name) == nullptr) read_.push_back(form);
  }
  return OkStatus();
}

StatusOr<v1::SampleChannels> ReadChannels::ToProto() const {
  v1::SampleChannels samples;
  samples.set_version(schema_.version());
  for (const Channel& channel : schema_.channels()) {
    const ChannelForm& form = channel.form;
    if (FindForm(read_, form.name) == nullptr) {
      if (!channel.required) continue;
      return Internal("no stage reads channel {}, which sample schema {} requires",
                      troupe::ToText(form), schema_.version());
    }
    auto* const proto = samples.add_channels();
    proto->set_name(form.name);
    proto->set_type(Name(form.type));
    proto->set_extent(Name(form.extent));
    proto->set_lanes(form.lanes);
  }
  return samples;
}

std::string ToText(const v1::SampleChannels& samples) {
  std::string text = fmt::format("schema {}: ", samples.version());
  for (int i = 0; i < samples.channels_size(); ++i) {
    const auto& channel = samples.channels(i);
    const std::string lanes = channel.lanes() == 1 ? "" : fmt::format("[{}]", channel.lanes());
    text += fmt::format("{}{} {}{} a {}", i == 0 ? "" : ", ", channel.name(), channel.type(), lanes,
                        channel.extent());
  }
  return text;
}

}  // namespace troupe
