#include "checkpoint/format/sample_channels.h"

#include <set>
#include <string>
#include <string_view>

namespace troupe {
namespace {

// Types and extents may be from a later build.
bool IsWord(std::string_view text) { return IsChannelName(text) && text.size() <= 16; }

std::string FormText(const v1::SampleChannel& channel) {
  const std::string lanes =
      channel.lanes() == 1 ? std::string() : fmt::format("[{}]", channel.lanes());
  return fmt::format("{} {}{} a {}", channel.name(), channel.type(), lanes, channel.extent());
}

bool HasForm(const v1::SampleChannel& channel, const ChannelForm& form) {
  return channel.type() == Name(form.type) && channel.extent() == Name(form.extent) &&
         channel.lanes() == form.lanes;
}

}  // namespace

int SampleSchemaVersion(const v1::SampleChannels& recorded) {
  return recorded.version() == 0 ? 1 : recorded.version();
}

Status ValidateSampleChannels(const v1::SampleChannels& recorded) {
  if (recorded.version() < 0) {
    return InvalidArgument("samples.version {} is below 0", recorded.version());
  }
  if (recorded.channels_size() > SampleSchema::kChannelsMax) {
    return InvalidArgument("samples: {} channels exceed the limit of {}", recorded.channels_size(),
                           SampleSchema::kChannelsMax);
  }
  std::set<std::string> names;
  for (const v1::SampleChannel& channel : recorded.channels()) {
    if (!IsChannelName(channel.name())) {
      return InvalidArgument("samples: \"{}\" is not a channel name", channel.name().substr(0, 64));
    }
    if (!names.insert(channel.name()).second) {
      return InvalidArgument("samples: channel \"{}\" appears twice", channel.name());
    }
    if (!IsWord(channel.type()) || !IsWord(channel.extent())) {
      return InvalidArgument(
          "samples: channel \"{}\" is \"{}\" a \"{}\", which is not a type and an extent",
          channel.name(), channel.type().substr(0, 16), channel.extent().substr(0, 16));
    }
    if (channel.lanes() < 1 || channel.lanes() > SampleSchema::kLanesMax) {
      return InvalidArgument("samples: channel \"{}\" has {} lanes, must have 1 to {}",
                             channel.name(), channel.lanes(), SampleSchema::kLanesMax);
    }
  }
  return OkStatus();
}

Status CheckSampleChannels(const v1::SampleChannels& recorded, const SampleSchema& schema) {
  for (const v1::SampleChannel& channel : recorded.channels()) {
    const Channel* const known = schema.Find(channel.name());
    if (known == nullptr) {
      return FailedPrecondition(
          "it needs channel {} of sample schema {}, which this build, with sample schema {}, does "
          "not know",
          FormText(channel), SampleSchemaVersion(recorded), schema.version());
    }
    if (!HasForm(channel, known->form)) {
      return FailedPrecondition(
          "it needs channel {} of sample schema {}; in this build, with sample schema {}, it is {}",
          FormText(channel), SampleSchemaVersion(recorded), schema.version(), ToText(known->form));
    }
  }
  return OkStatus();
}

}  // namespace troupe
