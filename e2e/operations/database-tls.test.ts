/**
 * The certificates that the server accepts from PostgreSQL. The peer implements the protocol up to
 * the startup message, the first message over TLS, which contains the role.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createSecureServer } from 'node:tls'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { selfSigned } from '../../testing/certificates.ts'
import { argv } from '../argv.ts'
import { type Environment, type Result, run, SERVER } from '../harness.ts'

const SSL_REQUEST_BYTES = 8
const certificate = selfSigned('localhost')
const directory = mkdtempSync(join(tmpdir(), 'svc-e2e-database-tls-'))
const authority = join(directory, 'authority.pem')
let received = ''
const secure = createSecureServer(
  { key: certificate.key, cert: certificate.certificate },
  (socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      socket.destroy()
    })
  },
)
/** Accepts the TLS request and forwards the rest of the connection to `secure`. */
const plain = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', (request: Buffer) => {
    if (request.length !== SSL_REQUEST_BYTES) {
      received += request.toString('latin1')
      socket.destroy()
      return
    }
    const upstream = connect(portOf(secure), '127.0.0.1')
    upstream.on('error', () => {})
    upstream.on('close', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
    socket.write('S')
    socket.pipe(upstream).pipe(socket)
  })
})

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

beforeAll(async () => {
  writeFileSync(authority, certificate.certificate)
  for (const server of [secure, plain]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  }
})
afterAll(() => {
  secure.close()
  plain.close()
  rmSync(directory, { recursive: true })
})
beforeEach(() => {
  received = ''
})

function migrate(mode: string, variables: Environment): Promise<Result> {
  const environment = {
    SERVICE_IDENTITY_DATABASE_URL: `postgres://ada:pw@localhost:${portOf(plain)}/identity${mode}`,
    SERVICE_PLATFORM_IDENTITY_PEPPER: 'A'.repeat(43),
    SERVICE_STATE_DIRECTORY: join(directory, 'state'),
    ...variables,
  }
  return run(argv`${SERVER} migrate`, { environment })
}

test.each(['require', 'verify-ca', 'verify-full', 'prefer'])(
  'sslmode=%s verifies the certificate of PostgreSQL despite NODE_TLS_REJECT_UNAUTHORIZED',
  async (mode) => {
    for (const variables of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: '0' }]) {
      const result = await migrate(`?sslmode=${mode}`, variables)
      expect(result.stderr).toMatch(/DEPTH_ZERO_SELF_SIGNED_CERT|self.signed certificate/)
      expect(result.status).not.toBe(0)
      expect(received).toBe('')
    }
  },
)

test('sslmode=require accepts an authority from NODE_EXTRA_CA_CERTS', async () => {
  await migrate('?sslmode=require', { NODE_EXTRA_CA_CERTS: authority })
  expect(received).toContain('ada')
})

test('sslmode=no-verify verifies no certificate', async () => {
  await migrate('?sslmode=no-verify', {})
  expect(received).toContain('ada')
})
