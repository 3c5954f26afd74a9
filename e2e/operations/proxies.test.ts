/**
 * A flood of invalid credentials from one address excludes no other caller, on either origin,
 * behind the proxies with the configuration files that ship. The proxies of this machine run in
 * front of the compiled server; 127.0.0.2 sends 100 invalid requests a second, and callers with
 * valid credentials use that address and 127.0.0.3. The test prints its figures.
 *
 * @module-tag slow
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { AUDIENCE, ISSUER, type JwtIssuer, jwtIssuer } from '../../testing/providers/jwt-issuers.ts'
import {
  APPLICATION_HOST,
  CADDY,
  MANAGEMENT_HOST,
  NGINX,
  negotiateProtocol,
  type RunningProxy,
} from '../../testing/servers/proxies.ts'
import { type Application, application, createKey, object } from '../application.ts'
import { productEnvironment } from '../harness.ts'
import { Client, type ClientRequest, type ClientResponse, Flood, repeated } from './floods.ts'

const FLOOD_PER_SECOND = 100
const ATTACKER = '127.0.0.2'
const NEIGHBOUR = '127.0.0.2'
const ELSEWHERE = '127.0.0.3'
const REQUESTS = 40
const BEHIND_PROXY = { SERVICE_MANAGEMENT_TLS_TERMINATED: 'true' }

const FUNCTIONS = `
import { query, v } from 'svc'
const clients = ['public', 'confidential'] as const

export const anyone = query({ clients, returns: v.string(), handler: () => 'anyone' })
export const user = query({
  clients, auth: 'user', returns: v.string(), handler: (ctx) => ctx.auth.user.subject,
})
`

let app: Application
let users: JwtIssuer
let publicKey: string

beforeAll(async () => {
  users = await jwtIssuer()
  app = await application(
    (workspace) => {
      mkdirSync(join(workspace, 'functions'), { recursive: true })
      writeFileSync(join(workspace, 'functions/who.ts'), FUNCTIONS)
      writeFileSync(join(workspace, '../product/auth.json'), descriptor())
    },
    { ...BEHIND_PROXY, SERVICE_PRODUCT_AUTH_CONFIG: 'auth.json' },
  )
  ;({ key: publicKey } = await createKey(app, { kind: 'public', scopes: 'query' }))
})

afterAll(async () => {
  await app?.installation.dispose()
  await users?.close()
})

function descriptor(): string {
  const provider = { name: 'users', kind: 'user', issuer: ISSUER, audience: AUDIENCE }
  const keys = { algorithms: ['ES256'], jwksUri: users.jwksUri }
  return JSON.stringify({ version: 1, providers: [{ ...provider, ...keys }] })
}

/** Returns the tokens of the operator that the harness logged in. */
function session(): { access: string; refresh: string } {
  const profile = readFileSync(
    join(app.installation.directory, 'config/credentials-v1.json'),
    'utf8',
  )
  const [access] = /rk_at_v1_[\w-]{43}/.exec(profile) ?? ['']
  const [refresh] = /rk_rt_v1_[\w-]{96}/.exec(profile) ?? ['']
  return { access, refresh }
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const forged = (prefix: string) => prefix + randomBytes(32).toString('base64url')
const self = (token: string): ClientRequest => ({ path: '/v1/auth/me', headers: bearer(token) })
const refreshing = (refreshToken: string): ClientRequest => {
  return { method: 'POST', path: '/v1/auth/refresh', body: { refreshToken } }
}

function query(key: string, name: string, headers: Record<string, string> = {}): ClientRequest {
  const target = 'channel:production'
  return {
    method: 'POST',
    path: '/v1/query',
    headers: { 'x-service-key': key, ...headers },
    body: { version: 1, target, function: `who.${name}`, arguments: object({}) },
  }
}

/** Waits until the rate limit is in force. */
async function untilLimited(flood: Flood): Promise<void> {
  await expect.poll(() => flood.statuses[429] ?? 0).toBeGreaterThan(0)
}

function report(where: string, perSecond: number, flood: Flood, others: object): void {
  const attack = `${perSecond} invalid requests/s gave ${JSON.stringify(flood.statuses)}`
  process.stdout.write(`${where}: ${attack}; ${JSON.stringify(others)}\n`)
}

/** Expects status 200 for all requests of all clients. */
function expectServed(results: readonly { readonly statuses: Record<number, number> }[]): void {
  for (const { statuses } of results) expect(statuses).toEqual({ 200: REQUESTS })
}

describe.each([NGINX, CADDY])('behind $name', (kind) => {
  const where = kind.installed ? 'as shipped' : `which is not at ${kind.executable}`

  describe.skipIf(!kind.installed)(where, () => {
    let proxy: RunningProxy
    const clients: Client[] = []
    const clientAt = (address: string, host: string): Client => {
      const client = new Client(proxy.port, host, address)
      clients.push(client)
      return client
    }

    beforeAll(async () => {
      const authority = (origin: string | null) => new URL(origin ?? '').host
      proxy = await kind.start({
        management: authority(app.server.management),
        application: authority(app.server.application),
      })
    })
    afterAll(async () => {
      for (const client of clients) client.close()
      await proxy?.stop()
    })

    test('both origins support HTTP/2 and accept a bearer of 16 KiB', async () => {
      expect(await negotiateProtocol(proxy.port)).toBe('h2')
      const long = bearer('a'.repeat(16 * 1024))
      const management = clientAt(ELSEWHERE, MANAGEMENT_HOST)
      const { body } = await management.send({ path: '/v1/auth/me', headers: long })
      expect(body?.error.code).toBe('PLATFORM_AUTHENTICATION_FAILED')
      const { status } = await clientAt(ELSEWHERE, APPLICATION_HOST).send(
        query(app.key, 'anyone', long),
      )
      expect(status).toBe(200)
    })

    test('operators work while another client floods the management origin', async () => {
      const neighbour = clientAt(NEIGHBOUR, MANAGEMENT_HOST)
      const elsewhere = clientAt(ELSEWHERE, MANAGEMENT_HOST)
      let i = 0
      const flood = new Flood(clientAt(ATTACKER, MANAGEMENT_HOST), FLOOD_PER_SECOND, () =>
        i++ % 4 === 0 ? refreshing(forged('rk_rt_v1_')) : self(forged('rk_at_v1_')),
      )
      await untilLimited(flood)
      const { access, refresh } = session()
      const [near, far] = await Promise.all([
        repeated(REQUESTS, () => neighbour.send(self(access))),
        repeated(REQUESTS, () => elsewhere.send(self(access))),
      ])
      const refreshed = await neighbour.send(refreshing(refresh))
      const renewed = await neighbour.send(self(refreshed.body?.accessToken))
      // The profile still has the old tokens.
      await keepTokens(refreshed)
      const perSecond = await flood.stop()
      report(`${kind.name}, management origin`, perSecond, flood, { near, far })
      expectServed([near, far])
      expect([refreshed.status, renewed.status]).toEqual([200, 200])
    })

    test('a server that starts during a flood accepts existing sessions', async () => {
      const neighbour = clientAt(NEIGHBOUR, MANAGEMENT_HOST)
      const flood = new Flood(clientAt(ATTACKER, MANAGEMENT_HOST), FLOOD_PER_SECOND, () =>
        self(forged('rk_at_v1_')),
      )
      await app.restart('stop')
      await untilLimited(flood)
      const { access } = session()
      const near = await repeated(REQUESTS, () => neighbour.send(self(access)))
      const perSecond = await flood.stop()
      report(`${kind.name}, after a restart`, perSecond, flood, { near })
      expectServed([near])
    })

    test('callers are served while another client floods the application origin', async () => {
      const neighbour = clientAt(NEIGHBOUR, APPLICATION_HOST)
      const elsewhere = clientAt(ELSEWHERE, APPLICATION_HOST)
      let i = 0
      const flood = new Flood(clientAt(ATTACKER, APPLICATION_HOST), FLOOD_PER_SECOND, () =>
        i++ % 2 === 0
          ? query(forged('rk_sec_v1_'), 'anyone')
          : query(publicKey, 'user', bearer(forged('ey'))),
      )
      await untilLimited(flood)
      const fresh = async (client: Client) => {
        const claims = users.claims(Date.now(), { jti: randomBytes(8).toString('hex') })
        return client.send(query(publicKey, 'user', bearer(await users.sign(claims))))
      }
      const served = await Promise.all([
        repeated(REQUESTS, () => neighbour.send(query(app.key, 'anyone'))),
        repeated(REQUESTS, () => elsewhere.send(query(app.key, 'anyone'))),
        repeated(REQUESTS, () => fresh(neighbour)),
        repeated(REQUESTS, () => fresh(elsewhere)),
      ])
      const perSecond = await flood.stop()
      const [near, far, nearUsers, farUsers] = served
      const others = { near, far, nearUsers, farUsers }
      report(`${kind.name}, application origin`, perSecond, flood, others)
      expectServed(served)
    })

    test('a server without the proxy setting warns once and loses no session', async () => {
      await app.server.stop()
      const server = await app.installation.start(productEnvironment(app.installation))
      const [neighbour, elsewhere] = [NEIGHBOUR, ELSEWHERE].map((address) =>
        clientAt(address, MANAGEMENT_HOST),
      )
      const flood = new Flood(clientAt(ATTACKER, MANAGEMENT_HOST), FLOOD_PER_SECOND, () =>
        self(forged('rk_at_v1_')),
      )
      await untilLimited(flood)
      const { access } = session()
      const [near, far] = await Promise.all([
        repeated(REQUESTS, () => neighbour!.send(self(access))),
        repeated(REQUESTS, () => elsewhere!.send(self(access))),
      ])
      const perSecond = await flood.stop()
      await server.stop()
      await app.start()
      report(`${kind.name}, without the setting`, perSecond, flood, { near, far })
      expectServed([near, far])
      const events = server.lines.map((line) => JSON.parse(line).event)
      expect(events.filter((event) => event === 'server.forwarded_untrusted')).toHaveLength(1)
    })
  })
})

/** Stores the tokens of a refresh for the next test. */
async function keepTokens({ status, body }: ClientResponse): Promise<void> {
  if (status !== 200) return
  const path = join(app.installation.directory, 'config/credentials-v1.json')
  const text = readFileSync(path, 'utf8')
    .replace(/rk_at_v1_[\w-]{43}/, body.accessToken)
    .replace(/rk_rt_v1_[\w-]{96}/, body.refreshToken)
  writeFileSync(path, text)
}
