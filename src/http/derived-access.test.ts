import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestIdentity, testIdentity } from '../../testing/identity.ts'
import { mountedRoutes } from '../../testing/management/mounted-routes.ts'
import type { TestManagement } from '../../testing/openapi/checked-origins.ts'
import {
  authenticateLogin,
  ENVIRONMENT,
  ENVIRONMENT_ID,
  firstOwner,
  OTHER_ENVIRONMENT,
  PROJECT_ID,
} from '../../testing/operators.ts'
import { deriveSession } from '../identity/derived-sessions.ts'
import { type Login, revokeSession } from '../identity/sessions.ts'
import { CAPABILITIES, type Capability, capabilitiesOfRole } from '../value/capabilities.ts'
import { INSTALLATION, type Scope } from '../value/scope.ts'
import type { Route } from './management/route.ts'
import { type ManagementApp, managementRoutes } from './management/routes.ts'

/*
 * Goal: a derived session reaches exactly the routes whose capability it was derived with, at its
 * scope, although its operator may reach every route. Method: each route that the server mounts is
 * called with sessions of representative subsets. A route that lets a caller in answers anything
 * but 401 and 403: most requests are invalid, or name what does not exist.
 */

let t: TestIdentity
let hono: TestManagement
let owner: Login

beforeAll(async () => {
  t = await testIdentity()
  owner = await firstOwner(t)
  hono = mountedRoutes(t)
})

afterAll(() => t.dispose())

const guarded = managementRoutes.filter((route) => capabilityOf(route) !== null)

function capabilityOf({ access }: Route<ManagementApp>): Capability | null {
  return access.kind === 'public' ? null : access.capability
}

const nameOf = ({ method, path }: Route<ManagementApp>): string => `${method} ${path}`

async function derive(scope: Scope, capabilities: readonly Capability[]): Promise<Login> {
  return deriveSession(t.identity, await authenticateLogin(t, owner), {
    capabilities,
    scope,
    lifetimeSeconds: 600,
    purpose: 'mcp',
    requestId: null,
  })
}

async function end({ session: { sessionId } }: Login): Promise<void> {
  const actor = await authenticateLogin(t, owner)
  await revokeSession(t.identity, actor, { sessionId, requestId: null })
}

const IDS: Readonly<Record<string, string>> = {
  projectId: PROJECT_ID,
  environmentId: ENVIRONMENT_ID,
}

async function statusOf(route: Route<ManagementApp>, login: Login): Promise<number> {
  const path = route.path.replace(/:(\w+)/g, (_, name: string) => IDS[name] ?? 'sample')
  const authorization = `Bearer ${login.accessToken.reveal()}`
  const { status } = await hono.request(path, { method: route.method, headers: { authorization } })
  return status
}

const SUBSETS: readonly (readonly [string, readonly Capability[]])[] = [
  ['what an observer has', capabilitiesOfRole('observer')],
  ['everything but documents', CAPABILITIES.filter((each) => !each.startsWith('data:'))],
  ['what a pipeline needs', ['releases:publish', 'releases:read', 'channels:promote']],
  ['the right to invoke alone', ['functions:invoke']],
]

test.each(SUBSETS)(
  'a session with %s reaches the routes of its capabilities alone',
  async (_, capabilities) => {
    const login = await derive(ENVIRONMENT, capabilities)
    for (const route of guarded) {
      const capability = capabilityOf(route)!
      const isReached = route.access.kind === 'environment' && capabilities.includes(capability)
      const status = await statusOf(route, login)
      // A route of the installation asks for the capability first, and then for its scope.
      if (route.access.kind === 'environment' || !capabilities.includes(capability)) {
        expect(status === 403, `${nameOf(route)} ${status}`).toBe(!isReached)
      }
      expect(status, nameOf(route)).not.toBe(401)
    }
    await end(login)
  },
)

test('each capability alone opens its routes, and no route of another one', {
  tags: ['slow'],
}, async () => {
  for (const capability of CAPABILITIES) {
    const login = await derive(INSTALLATION, [capability])
    for (const route of guarded) {
      const status = await statusOf(route, login)
      const isReached = capabilityOf(route) === capability
      expect(status === 403, `${capability}: ${nameOf(route)} ${status}`).toBe(!isReached)
    }
    await end(login)
  }
})

test('a session at another Environment reaches no route of this one', async () => {
  const login = await derive(OTHER_ENVIRONMENT, CAPABILITIES)
  for (const route of guarded.filter(({ access }) => access.kind === 'environment')) {
    expect(await statusOf(route, login), nameOf(route)).toBe(403)
  }
  await end(login)
})

test('no route serves a derived session once its parent is revoked', async () => {
  const login = await derive(INSTALLATION, CAPABILITIES)
  const reached = guarded.find(({ access }) => access.kind === 'environment')!
  expect(await statusOf(reached, login)).not.toBe(401)
  await end(owner)
  for (const route of managementRoutes.filter(({ access }) => access.kind !== 'public')) {
    expect(await statusOf(route, login), nameOf(route)).toBe(401)
  }
})
