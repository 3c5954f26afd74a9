/** Settings of traces, with the names that OpenTelemetry gives them. */
import { Secret } from '../value/secret.ts'
import { invalid, type ProcessEnvironment, readPlain, readSecret } from './sources.ts'

export interface TraceSettings {
  /** The destination of traces: the endpoint with the path `/v1/traces`. */
  readonly url: string
  readonly protocol: 'http/protobuf' | 'http/json'
  /** Headers of the requests, which may authenticate them. */
  readonly headers: readonly TraceHeader[]
  readonly serviceName: string
  /** Share of the traces that are sampled where no caller has decided, from 0 to 1. */
  readonly ratio: number
}

export interface TraceHeader {
  readonly name: string
  readonly value: Secret
}

const ENDPOINT = 'OTEL_EXPORTER_OTLP_ENDPOINT'
const HEADERS_MAX = 16
const SERVICE_CHARACTERS_MAX = 128
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** Headers of the connection and of the body. */
const RESERVED =
  /^(?:connection|content-.*|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

/** Returns null if traces are not exported. Throws SERVER_CONFIGURATION_INVALID. */
export function readTraces(environment: ProcessEnvironment): TraceSettings | null {
  const endpoint = readPlain(environment, ENDPOINT)
  // The other names may be there for other programs of this machine.
  if (endpoint === null) return null
  const headers = readHeaders(environment)
  return {
    url: readUrl(endpoint, headers.length > 0),
    protocol: readProtocol(environment),
    headers,
    serviceName: readServiceName(environment),
    ratio: readRatio(environment),
  }
}

function readUrl(endpoint: string, hasHeaders: boolean): string {
  const url = URL.parse(endpoint)
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:'
  if (url === null || !isHttp || /[?#]/.test(endpoint) || url.username + url.password !== '') {
    throw invalid(ENDPOINT, 'a URL without a query and a user, such as http://localhost:4318')
  }
  if (hasHeaders && url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw invalid(ENDPOINT, 'https, since OTEL_EXPORTER_OTLP_HEADERS are secret')
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}/v1/traces`
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
}

function readProtocol(environment: ProcessEnvironment): TraceSettings['protocol'] {
  const name = 'OTEL_EXPORTER_OTLP_PROTOCOL'
  const value = readPlain(environment, name)
  if (value === 'http/protobuf' || value === 'http/json') return value
  throw invalid(name, 'http/protobuf or http/json')
}

/** Reads `name=value` pairs that commas separate; values are percent-encoded. */
function readHeaders(environment: ProcessEnvironment): readonly TraceHeader[] {
  const source = readSecret(environment, 'OTEL_EXPORTER_OTLP_HEADERS')
  if (source === null) return []
  const rule = 'up to 16 different headers such as api-key=value, separated by commas'
  const pairs = source.secret.reveal().split(',')
  const headers = pairs.map((pair) => {
    const at = pair.indexOf('=')
    const name = pair.slice(0, Math.max(at, 0)).trim().toLowerCase()
    const value = decodedValue(pair.slice(at + 1).trim())
    if (value === null || !HEADER_NAME.test(name) || RESERVED.test(name)) {
      throw invalid(source.name, rule)
    }
    return { name, value: new Secret(value) }
  })
  const names = new Set(headers.map(({ name }) => name))
  if (headers.length > HEADERS_MAX || names.size < headers.length) throw invalid(source.name, rule)
  return headers
}

function decodedValue(text: string): string | null {
  try {
    const value = decodeURIComponent(text)
    return /^[\t\x20-\x7e]+$/.test(value) ? value : null
  } catch {
    return null
  }
}

function readServiceName(environment: ProcessEnvironment): string {
  const name = 'OTEL_SERVICE_NAME'
  const value = readPlain(environment, name)!
  if (value.length <= SERVICE_CHARACTERS_MAX) return value
  throw invalid(name, `at most ${SERVICE_CHARACTERS_MAX} characters`)
}

function readRatio(environment: ProcessEnvironment): number {
  const name = 'OTEL_TRACES_SAMPLER_ARG'
  const value = readPlain(environment, name)!
  if (/^(?:0|1|0?\.[0-9]{1,9}|1\.0{1,9})$/.test(value)) return Number(value)
  throw invalid(name, 'a share from 0 to 1, such as 0.05')
}
