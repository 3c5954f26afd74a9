import { afterEach, describe, expect, test } from 'vitest'
import { selfSigned } from '../../../testing/certificates.ts'
import { APPLICATION, BASE, file, ROOT } from '../../../testing/environments/environments.ts'
import { freePort } from '../../../testing/servers/ports.ts'
import { runServer } from '../modes.ts'

const { certificate, key } = selfSigned('elsewhere.test')
const open: { stop(): unknown }[] = []

afterEach(() => {
  for (const server of open.splice(0)) server.stop()
})

/** Answers `path` alone with 200, or with `status`. Returns the address. */
function answer(path: string, status = 200, tls = false): string {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    ...(tls && { tls: { cert: certificate, key } }),
    fetch: (request) =>
      new Response(null, { status: new URL(request.url).pathname === path ? status : 404 }),
  })
  open.push({ stop: () => server.stop(true) })
  return `127.0.0.1:${server.port}`
}

async function ready(environment: Readonly<Record<string, string>>) {
  let [out, err] = ['', '']
  const io = {
    out: (text: string) => {
      out += text
    },
    err: (text: string) => {
      err += text
    },
    errIsTerminal: false,
  }
  return { exit: await runServer(['ready'], { ...BASE, ...environment }, io), out, err }
}

describe('svc-server ready', () => {
  test('a server is ready if its Management listener says so', async () => {
    const listen = answer('/health/ready')
    expect(await ready({ SERVICE_MANAGEMENT_LISTEN: listen })).toEqual({
      exit: 0,
      out: 'The server is ready.\n',
      err: '',
    })
  })

  test('an unspecified address is asked at the loopback address', async () => {
    const [, port] = answer('/health/ready').split(':')
    const settings = { SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' }
    const { exit } = await ready({ ...settings, SERVICE_MANAGEMENT_LISTEN: `0.0.0.0:${port}` })
    expect(exit).toBe(0)
  })

  test('a listener that ends TLS is asked over TLS, with any certificate', async () => {
    const { exit, err } = await ready({
      ...ROOT,
      SERVICE_TLS_CERTIFICATE_FILE: file('ready.pem', certificate),
      SERVICE_TLS_KEY_FILE: file('ready.key', key),
      SERVICE_MANAGEMENT_LISTEN: answer('/health/ready', 200, true),
      SERVICE_APPLICATION_LISTEN: answer('/healthz', 200, true),
    })
    expect([exit, err]).toEqual([0, ''])
  })

  test.each([
    [503, 200, 'SERVICE_MANAGEMENT_LISTEN: /health/ready answered 503'],
    [200, 503, 'SERVICE_APPLICATION_LISTEN: /healthz answered 503'],
  ])('statuses %i and %i are not ready, and the reason names the listener', async (...given) => {
    const [management, application, reason] = given
    const { exit, out, err } = await ready({
      ...APPLICATION,
      SERVICE_MANAGEMENT_LISTEN: answer('/health/ready', management),
      SERVICE_APPLICATION_LISTEN: answer('/healthz', application),
    })
    expect([exit, out]).toEqual([5, ''])
    expect(err).toMatch(/SERVER_NOT_READY: /)
    expect(err).toContain(`(${reason})`)
  })

  test('a server that does not run is not ready', async () => {
    const { exit, err } = await ready({
      SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${await freePort()}`,
    })
    expect(exit).toBe(5)
    expect(err).toContain('SERVICE_MANAGEMENT_LISTEN: no connection')
  })

  test('a listener whose port the system chooses cannot be asked', async () => {
    const { exit, err } = await ready({ SERVICE_MANAGEMENT_LISTEN: '127.0.0.1:0' })
    expect(exit).toBe(78)
    expect(err).toContain('Expected: a fixed port')
  })
})
