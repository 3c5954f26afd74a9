/** Rules of the settings of traces, each broken once. */

const INVALID = 'SERVER_CONFIGURATION_INVALID'
const OTLP = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const OTLP_HEADERS = 'OTEL_EXPORTER_OTLP_HEADERS'
const OTLP_FORM = 'OTEL_EXPORTER_OTLP_PROTOCOL'
const SERVICE_NAME = 'OTEL_SERVICE_NAME'
const SHARE = 'OTEL_TRACES_SAMPLER_ARG'
const TRACED = { [OTLP]: 'https://collector.test' }
const PLAIN = { [OTLP]: 'http://collector.test', [OTLP_HEADERS]: 'a=canary' }

export const TRACES = [
  ['traces are sent to a URL', INVALID, OTLP, { [OTLP]: 'canary:4318' }],
  ['traces are sent by HTTP', INVALID, OTLP, { [OTLP]: 'grpc://canary.test' }],
  ['no user is in the URL', INVALID, OTLP, { [OTLP]: 'https://canary:canary@collector.test' }],
  ['no query is in the URL', INVALID, OTLP, { [OTLP]: 'https://collector.test?key=canary' }],
  ['headers of traces need TLS', INVALID, OTLP, PLAIN],
  ['the form of traces is known', INVALID, OTLP_FORM, { ...TRACED, [OTLP_FORM]: 'canary' }],
  ['a header has a value', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'canary=' }],
  ['a header has a name', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: '=canary' }],
  ['headers are pairs', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'canary' }],
  ['headers are encoded', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'a=canary%' }],
  ['headers are no others', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'Host=canary' }],
  ['headers differ', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'a=canary,A=canary' }],
  ['headers are lines', INVALID, OTLP_HEADERS, { ...TRACED, [OTLP_HEADERS]: 'a=canary%0d%0ab: c' }],
  [
    'the name of the server is short',
    INVALID,
    SERVICE_NAME,
    { ...TRACED, [SERVICE_NAME]: 'canary'.repeat(99) },
  ],
  ['the share is a number', INVALID, SHARE, { ...TRACED, [SHARE]: 'canary' }],
  ['the share is at most 1', INVALID, SHARE, { ...TRACED, [SHARE]: '1.5' }],
  ['the share is not negative', INVALID, SHARE, { ...TRACED, [SHARE]: '-0.5' }],
] as const
