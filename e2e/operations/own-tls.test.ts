/**
 * A compiled server that ends TLS itself, with one and with two application processes: operators
 * and callers use it without a proxy, and its certificate is renewed while they do.
 *
 * @module-tag slow
 */
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect as connectPlain, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { WebSocket } from 'ws'
import { type Certificate, selfSigned } from '../../testing/certificates.ts'
import type { ServerProcess } from '../../testing/servers/server-process.ts'
import { processesOf } from '../application-processes/processes.ts'
import { argv } from '../argv.ts'
import { createInstallation, type Installation } from '../harness.ts'
import { ask, callHeaders, handshake, openRealtime, TlsApplication } from './tls-application.ts'

const DEADLINE_MS = 120_000
const first = selfSigned('localhost', 'first.test')
const second = selfSigned('localhost', 'second.test')
const trusted = [first.certificate, second.certificate]

interface Served {
  readonly installation: Installation
  readonly server: ServerProcess
  readonly application: TlsApplication
  readonly key: string
  readonly managementPort: number
  renew(given: Certificate): void
}

/** Serves a Workspace at https://localhost; the client trusts both certificates. */
async function serve(processes: string): Promise<Served> {
  const installation = await createInstallation()
  const within = (name: string) => join(installation.directory, name)
  const renew = ({ certificate, key }: Certificate): void => {
    for (const [name, content] of [
      ['tls.pem', certificate],
      ['tls.key', key],
    ] as const) {
      writeFileSync(within(`${name}.new`), content, { mode: 0o600 })
      renameSync(within(`${name}.new`), within(name))
    }
  }
  renew(first)
  writeFileSync(within('trusted.pem'), trusted.join(''))
  const managementPort = Number(installation.environment.SERVICE_MANAGEMENT_LISTEN!.split(':')[1])
  const url = `https://localhost:${managementPort}`
  const application = await TlsApplication.init(installation, {
    processes,
    settings: {
      SERVICE_PUBLIC_MANAGEMENT_URL: url,
      SERVICE_TLS_CERTIFICATE_FILE: within('tls.pem'),
      SERVICE_TLS_KEY_FILE: within('tls.key'),
    },
    client: { NODE_EXTRA_CA_CERTS: within('trusted.pem') },
  })
  const server = await installation.start(application.settings)
  const key = await application.release(url)
  return { installation, application, server, key, managementPort, renew }
}

/** Calls the Function over a connection of its own. */
function hello({ application: { applicationPort }, key }: Served): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: 'localhost',
        port: applicationPort,
        path: '/v1/functions/greeting.hello',
        headers: callHeaders(key),
        ca: trusted,
        agent: false,
      },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        response.once('end', () => resolve(text))
      },
    )
    sent.once('error', reject)
    sent.end()
  })
}

/** Opens an authenticated connection, which stays open. */
function realtime({ application: { applicationPort }, key }: Served): Promise<WebSocket> {
  return openRealtime(`wss://localhost:${applicationPort}`, key, { ca: trusted })
}

function handshakeAt(port: number, options = {}): Promise<TLSSocket> {
  return handshake({ host: 'localhost', port, ca: trusted, ...options })
}

async function namesAt(port: number): Promise<string> {
  const socket = await handshakeAt(port)
  const { subjectaltname = '' } = socket.getPeerCertificate()
  socket.destroy()
  return subjectaltname
}

describe.each(['1', '2'])('a server that ends TLS, with %s application processes', (processes) => {
  let served: Served

  beforeAll(async () => {
    served = await serve(processes)
  })
  afterAll(() => served?.installation.dispose())

  /** Calls again where a connection met the instant of a change; each process has one. */
  async function helloAgain(onFailure: () => void): Promise<string> {
    for (let tries = 0; tries < Number(processes) + 1; tries++) {
      try {
        return await hello(served)
      } catch {
        onFailure()
      }
    }
    return hello(served)
  }

  test('operators and callers use it without a proxy', async () => {
    expect(JSON.parse(await hello(served))).toMatchObject({ result: 'hello' })
    expect(served.server.management).toMatch(/^https:/)
    const metrics = await served.application.svc(
      argv`metrics --root ${served.installation.productRoot} --remote`,
    )
    expect(JSON.stringify(metrics)).toContain('certificateRemainingMicros')
  })

  test('a caller without TLS, and one with TLS 1.1, gets no answer', async () => {
    const plain = connectPlain(served.application.applicationPort, 'localhost')
    plain.end('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    let received = ''
    plain.setEncoding('latin1').on('data', (part) => {
      received += part
    })
    plain.on('error', () => {})
    await once(plain, 'close')
    expect(received).not.toContain('HTTP/')
    const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }
    await expect(handshakeAt(served.application.applicationPort, old)).rejects.toThrow()
  })

  test('a handshake that does not end is closed, however slowly its bytes arrive', async () => {
    // The head of a record and of a ClientHello of 508 bytes.
    const begun = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3])
    const open = async (act: (socket: Socket) => void): Promise<void> => {
      const socket = connectPlain(served.application.applicationPort, 'localhost')
      socket.on('error', () => {})
      const closed = once(socket.resume(), 'close')
      await once(socket, 'connect')
      act(socket)
      await closed
    }
    await Promise.all([
      open(() => {}),
      open((socket) => void socket.write(begun)),
      open((socket) => {
        socket.write(begun)
        const timer = setInterval(() => socket.write(Buffer.alloc(1)), 1_000)
        socket.once('close', () => clearInterval(timer))
      }),
    ])
    expect(JSON.parse(await hello(served))).toMatchObject({ result: 'hello' })
  })

  test('another server cannot share its address', async () => {
    const { installation, application } = served
    const other = {
      ...application.settings,
      SERVICE_PRODUCT_ROOT: join(installation.directory, 'other'),
    }
    await expect(installation.start(other)).rejects.toThrow('SERVER_LISTEN_FAILED')
  })

  test('a new certificate serves new connections, and those that are open stay', async () => {
    const { application, managementPort } = served
    const { applicationPort } = application
    const socket = await realtime(served)
    let isRenewed = false
    let [calls, failures] = [0, 0]
    const callers = Array.from({ length: 4 }, async () => {
      while (!isRenewed) {
        const answer = await helloAgain(() => failures++)
        calls++
        expect(JSON.parse(answer)).toMatchObject({ result: 'hello' })
      }
    })
    served.renew(second)
    for (const port of [applicationPort, managementPort]) {
      // Each process looks for itself, so all of many connections must have it.
      const all = async () => Promise.all(Array.from({ length: 16 }, () => namesAt(port)))
      const renewed = Array.from({ length: 16 }, () => expect.stringContaining('second.test'))
      await expect.poll(all, { timeout: DEADLINE_MS }).toEqual(renewed)
    }
    isRenewed = true
    await Promise.all(callers)
    console.log(`${failures} of ${calls} calls over new connections failed while it was renewed`)
    expect(calls).toBeGreaterThan(0)
    const pong = await ask(socket, { type: 'ping', nonce: 'open' })
    expect(pong).toMatchObject({ type: 'pong', nonce: 'open' })
    socket.terminate()
    const events = () => served.server.lines.join('\n')
    expect(events()).toContain('server.certificate_replaced')
  })

  test('files that do not fit leave the certificate as it is', async () => {
    const { application, server } = served
    served.renew({ certificate: first.certificate, key: second.key })
    await expect
      .poll(() => server.lines.join('\n'), { timeout: DEADLINE_MS })
      .toContain('server.certificate_rejected')
    expect(await namesAt(application.applicationPort)).toContain('second.test')
    expect(JSON.parse(await hello(served))).toMatchObject({ result: 'hello' })
  })

  test.skipIf(processes === '1')(
    'a process that replaces another one serves the certificate before, and the repaired one',
    async () => {
      const { application, server } = served
      const { applications: killed } = processesOf(served)
      expect(killed).toHaveLength(Number(processes))
      for (const pid of killed) process.kill(pid, 'SIGKILL')
      await expect
        .poll(() => helloAgain(() => {}).catch(() => ''), { timeout: DEADLINE_MS })
        .toContain('hello')
      expect(await namesAt(application.applicationPort)).toContain('second.test')
      expect(server.lines.join('\n')).not.toContain('PRIVATE KEY')
      served.renew(first)
      const all = async () =>
        Promise.all(Array.from({ length: 16 }, () => namesAt(application.applicationPort)))
      const repaired = Array.from({ length: 16 }, () => expect.stringContaining('first.test'))
      await expect.poll(all, { timeout: DEADLINE_MS }).toEqual(repaired)
    },
  )

  test('the server stops while connections of an earlier certificate are open', async () => {
    const { applicationPort } = served.application
    const socket = await realtime(served)
    served.renew(first)
    await expect
      .poll(() => namesAt(applicationPort), { timeout: DEADLINE_MS })
      .toContain('first.test')
    const closed = once(socket, 'close')
    expect(await served.server.stop()).toBe(0)
    await closed
  })
})
