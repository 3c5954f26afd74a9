/**
 * A compiled server that orders its certificate from Pebble, with one and with two application
 * processes: its addresses open with the first certificate, which is renewed while they are used.
 *
 * @module-tag slow
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { createPebble, NO_PEBBLE, type Pebble } from '../../testing/servers/pebble.ts'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { superviseProcess } from '../../testing/servers/supervisor.ts'
import { createInstallation, type Installation, SERVER } from '../harness.ts'
import { ask, callHeaders, handshake, openRealtime, TlsApplication } from './tls-application.ts'

const DEADLINE_MS = 180_000
/** Time for which a certificate is valid: renewed after two thirds, less than the jitter. */
const LIFETIME_SECONDS = 30
const DOMAIN = 'api.test.example'
describe.skipIf(NO_PEBBLE !== null).each(['1', '2'])(
  'a server with ACME, and %s application processes',
  (processes) => {
    let pebble: Pebble
    let installation: Installation
    let application: TlsApplication
    let server: ServerProcess
    let key: string

    beforeAll(async () => {
      pebble = await createPebble({ seconds: LIFETIME_SECONDS })
      installation = await createInstallation()
      application = await TlsApplication.init(installation, {
        processes,
        settings: {
          SERVICE_TLS_ACME_DOMAIN: DOMAIN,
          SERVICE_TLS_ACME_DIRECTORY_URL: pebble.directoryUrl,
          SERVICE_TLS_ACME_CA_FILE: pebble.caFile,
          SERVICE_TLS_ACME_HTTP_LISTEN: `127.0.0.1:${pebble.httpPort}`,
          // The management address stays plain, so it serves while a certificate is awaited.
          SERVICE_MANAGEMENT_TLS_TERMINATED: 'true',
        },
      })
    })
    afterAll(async () => {
      await installation?.dispose()
      await pebble?.dispose()
    })

    /** Opens an authenticated connection, which stays open. */
    async function realtime(): Promise<WebSocket> {
      const ca = await pebble.root()
      const options = { ca, servername: DOMAIN, headers: { host: DOMAIN } }
      return openRealtime(`wss://127.0.0.1:${application.applicationPort}`, key, options)
    }

    const lines = () => server.lines.join('\n')
    const heard = (event: string) => expect.poll(lines, { timeout: DEADLINE_MS }).toContain(event)

    async function connection(): Promise<TLSSocket> {
      const { applicationPort: port } = application
      return handshake({ host: '127.0.0.1', port, servername: DOMAIN, ca: await pebble.root() })
    }

    async function serialOf(): Promise<string> {
      const socket = await connection()
      const { serialNumber } = socket.getPeerCertificate()
      socket.destroy()
      return serialNumber
    }

    /** Sends one request over a connection of its own, and returns all of the response. */
    async function get(path: string, fields: readonly string[] = []): Promise<string> {
      const socket = await connection()
      const head = [`GET ${path} HTTP/1.1`, `Host: ${DOMAIN}`, 'Connection: close', ...fields]
      let text = ''
      socket.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      socket.write(`${head.join('\r\n')}\r\n\r\n`)
      await once(socket, 'close')
      return text
    }

    const hello = () =>
      get(
        '/v1/functions/greeting.hello',
        Object.entries(callHeaders(key)).map((field) => field.join(': ')),
      )

    test('its addresses stay closed while the authority is down', async () => {
      const environment = { ...installation.environment, ...application.settings }
      const waiting = superviseProcess([SERVER, 'serve'], {
        signal: 'TERM',
        directory: installation.directory,
        environment,
      })
      let printed = ''
      waiting.stderr.on('data', (text: string) => {
        printed += text
      })
      const failed = expect.poll(() => printed, { timeout: DEADLINE_MS })
      await failed.toContain('server.certificate_order_failed')
      expect(printed).toContain('server.certificate_awaited')
      expect(printed).not.toContain('"server.ready"')
      const management = `http://${installation.environment.SERVICE_MANAGEMENT_LISTEN}`
      expect((await fetch(`${management}/health/ready`)).status).toBe(200)
      const closed = connectPlain(application.applicationPort, '127.0.0.1')
      const [error] = await once(closed, 'error')
      expect(error.code).toBe('ECONNREFUSED')
      expect(await waiting.stop()).toBe(0)
    })

    test('it is ready with a certificate that the root of the authority verifies', async () => {
      await pebble.start()
      server = await installation.start(application.settings)
      await heard('"server.ready"')
      expect(await get('/healthz')).toContain(' 200 ')
      const socket = await connection()
      expect(socket.getPeerCertificate().subjectaltname).toBe(`DNS:${DOMAIN}`)
      socket.destroy()
      key = await application.release(server.management)
      expect(await hello()).toContain('"hello"')
    })

    test('the address of challenges redirects to HTTPS', async () => {
      const sent = request({
        host: '127.0.0.1',
        port: pebble.httpPort,
        path: '/a?b=c',
        headers: { host: DOMAIN },
      })
      sent.end()
      const [response] = await once(sent, 'response')
      expect(response.statusCode).toBe(308)
      expect(response.headers.location).toBe(`https://${DOMAIN}/a?b=c`)
      response.resume()
    })

    test('a renewal leaves the connections that are open', async () => {
      const socket = await realtime()
      const before = await serialOf()
      await expect.poll(serialOf, { timeout: DEADLINE_MS, interval: 500 }).not.toBe(before)
      const pong = await ask(socket, { type: 'ping', nonce: 'open' })
      expect(pong).toMatchObject({ type: 'pong', nonce: 'open' })
      socket.terminate()
      expect(lines()).toContain('server.certificate_replaced')
    })

    test('a server that was killed serves again, with its certificate or another', async () => {
      server.kill()
      await server.ended
      server = await installation.start(application.settings)
      await heard('"server.ready"')
      expect(await hello()).toContain('"hello"')
      const file = readFileSync(join(installation.productRoot, 'acme/certificate.pem'), 'utf8')
      const keyText = /PRIVATE KEY-----\n(.{20})/.exec(file)![1]!
      expect(lines()).not.toContain(keyText)
      expect(await server.stop()).toBe(0)
    })

    test('a damaged certificate file is replaced by an order', async () => {
      writeFileSync(join(installation.productRoot, 'acme/certificate.pem'), 'damaged')
      server = await installation.start(application.settings)
      await heard('"server.ready"')
      expect(await hello()).toContain('"hello"')
      expect(await server.stop()).toBe(0)
    })
  },
)
