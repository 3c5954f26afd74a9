import { describe, expect, test } from 'vitest'
import { readTraces } from './traces.ts'

const OTEL_EXPORTER_OTLP_ENDPOINT = 'https://collector.test:4318'

const read = (environment: Record<string, string>) =>
  readTraces({ OTEL_EXPORTER_OTLP_ENDPOINT, ...environment })!

describe('traces', () => {
  test('traces are not exported without an endpoint', () => {
    expect(readTraces({ OTEL_TRACES_SAMPLER_ARG: '0.5' })).toBeNull()
  })

  test('traces have defaults', () => {
    expect(read({})).toEqual({
      url: 'https://collector.test:4318/v1/traces',
      protocol: 'http/protobuf',
      headers: [],
      serviceName: 'svc-server',
      ratio: 1,
    })
  })

  test.each([
    ['http://localhost:4318', 'http://localhost:4318/v1/traces'],
    ['https://collector.test/', 'https://collector.test/v1/traces'],
    ['https://collector.test/otlp/', 'https://collector.test/otlp/v1/traces'],
    ['http://[::1]:4318', 'http://[::1]:4318/v1/traces'],
  ])('traces are sent below the endpoint %s', (endpoint, url) => {
    expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }).url).toBe(url)
  })

  test('traces are authenticated by headers, which stay secret', () => {
    const headers = 'Api-Key=a%20key%2C, x-tenant=1'
    const settings = read({ OTEL_EXPORTER_OTLP_HEADERS: headers })
    const revealed = settings.headers.map(({ name, value }) => [name, value.reveal()])
    expect(revealed).toEqual([
      ['api-key', 'a key,'],
      ['x-tenant', '1'],
    ])
    expect(JSON.stringify(settings)).not.toContain('a key')
  })

  test.each(['http://localhost:4318', 'http://127.0.0.1:4318', 'http://[::1]:4318'])(
    'traces may send their headers without TLS to %s',
    (endpoint) => {
      const given = { OTEL_EXPORTER_OTLP_HEADERS: 'a=1', OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }
      expect(read(given).headers).toHaveLength(1)
    },
  )

  test.each([
    ['0', 0],
    ['1', 1],
    ['1.0', 1],
    ['.05', 0.05],
    ['0.000001', 0.000001],
  ])('traces are sampled by the share %s', (text, ratio) => {
    expect(read({ OTEL_TRACES_SAMPLER_ARG: text }).ratio).toBe(ratio)
  })
})
