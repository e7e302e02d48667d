#include "model/program/channels.h"

#include <set>

namespace troupe::model {

StatusOr<ChannelForm> FormOf(const std::string& channel, const Value& value) {
  ChannelForm form;
  form.name = channel;
  form.lanes = value.row_elements();
  const bool known_type = value.dtype == DType::kInt32 || value.dtype == DType::kFloat32;
  const bool by_sample = !value.dims.empty() && value.dims[0].name == "samples";
  const bool by_token = !value.dims.empty() && value.dims[0].name == "rows";
  if (!known_type || value.role != Role::kInput || !(by_sample || by_token)) {
    return Internal("channel {}: value {} of {}, {}, holds none", channel, value.name,
                    Name(value.dtype), Name(value.role));
  }
  form.type = value.dtype == DType::kInt32 ? ChannelType::kInt32 : ChannelType::kFloat32;
  form.extent = by_sample ? ChannelExtent::kSample : ChannelExtent::kToken;
  return form;
}

StatusOr<std::vector<ChannelForm>> ChannelsRead(const Program& program) {
  std::vector<ChannelForm> all;
  for (const ChunkInterface& chunk : program.chunks) {
    for (const ChannelInput& read : chunk.channels) {
      TROUPE_ASSIGN_OR_RETURN(const ChannelForm form,
                              FormOf(read.channel, program.value(read.value)));
      const ChannelForm* const before = FindForm(all, form.name);
      if (before == nullptr) {
        all.push_back(form);
      } else if (*before != form) {
        return Internal("chunk {} reads {}, a chunk before it {}", chunk.chunk, ToText(form),
                        ToText(*before));
      }
    }
  }
  return all;
}

Status CheckChannels(const Program& program, const SampleSchema& schema) {
  for (const ChunkInterface& chunk : program.chunks) {
    std::set<std::string> seen;
    for (const ChannelInput& read : chunk.channels) {
      TROUPE_ASSIGN_OR_RETURN(const ChannelForm form,
                              FormOf(read.channel, program.value(read.value)));
      const Channel* const channel = schema.Find(form.name);
      if (channel == nullptr) {
        return Internal("chunk {} reads {}, which sample schema {} does not know", chunk.chunk,
                        ToText(form), schema.version());
      }
      if (form != channel->form) {
        return Internal("chunk {} reads {}, which is {} in sample schema {}", chunk.chunk,
                        ToText(form), ToText(channel->form), schema.version());
      }
      if (!seen.insert(form.name).second) {
        return Internal("chunk {} reads {} twice", chunk.chunk, ToText(form));
      }
      const bool is_first = chunk.input == kNoValue, is_last = chunk.output == kNoValue;
      if ((channel->reader == ChannelReader::kFirstStage && !is_first) ||
          (channel->reader == ChannelReader::kLastStage && !is_last)) {
        return Internal("chunk {} reads {}, which sample schema {} has only for the {}",
                        chunk.chunk, ToText(form), schema.version(), Name(channel->reader));
      }
    }
  }
  return OkStatus();
}

}  // namespace troupe::model
