// A library that is no plugin: it has no function GetPjrtApi.
extern "C" int NoPlugin() { return 0; }
