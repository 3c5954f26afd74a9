/**
 * @module-tag slow
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rejectionCode, type TestIdentity, testIdentity } from '../../testing/identity.ts'
import {
  type LossInjector,
  lastAudit,
  lossInjector,
  recordsSince,
} from '../../testing/losses/loss-injector.ts'
import { firstOwner } from '../../testing/operators.ts'
import { ensureBootstrap, recoverBootstrap } from './bootstrap.ts'
import { openBootstrapFiles } from './bootstrap-files.ts'
import type { IdentityCore } from './core.ts'
import { exchange } from './exchange.ts'
import { reconcileRecoveryFile, recoverOwner } from './owner-recovery.ts'

/*
 * Goal: wherever a start or a recovery loses its connection, the next one ends with one pending
 * code, which is the one in the file. Method: each loss, then the same again undisturbed.
 */

let t: TestIdentity
let injector: LossInjector

beforeEach(async () => {
  t = await testIdentity()
  injector = await lossInjector(t)
})

afterEach(async () => {
  await injector.close()
  await t.dispose()
})

interface Recovery {
  run(core: IdentityCore): Promise<unknown>
  readonly path: string
  /** Possible outcomes where the change is stored. Otherwise: PLATFORM_UNAVAILABLE. */
  readonly stored: readonly string[]
  /** Audit operations that one run records, sorted. */
  readonly records: readonly string[]
  /** Runs before each loss. */
  prepare?(): Promise<void>
}

async function everyLoss({ run, path, stored, records, prepare }: Recovery): Promise<void> {
  await prepare?.()
  const found = await injector.lossesOf(run)
  expect(found.length).toBeGreaterThan(7)
  for (const loss of found) {
    await prepare?.()
    t.system.advance(1)
    const last = await lastAudit(t)
    const code = await injector.inject(run, loss)
    const recorded = await recordsSince(t, last)
    if (recorded.length === 0) expect(['PLATFORM_UNAVAILABLE', ...stored]).toContain(code)
    else expect([stored.includes(code), recorded], loss.where).toEqual([true, records])
    t.system.advance(1)
    await run(t.identity)
    await expectOneCode(path)
  }
}

async function expectOneCode(path: string): Promise<void> {
  const pending = await t.sql<{ code_digest: Buffer }>(
    `select code_digest from service_operator_invitations
      where kind = 'bootstrap' and state = 'pending'`,
  )
  const inFile = readFileSync(path, 'utf8').trimEnd()
  expect(pending.map((row) => row.code_digest)).toEqual([
    t.identity.credentials.digestInvitationCode(inFile),
  ])
  expect(existsSync(`${path}.next`)).toBe(false)
}

async function expectUsable(path: string): Promise<void> {
  const code = readFileSync(path, 'utf8').trimEnd()
  const plain = { deviceName: null, operatorName: null, requestId: null }
  expect(await rejectionCode(exchange(t.identity, { ...plain, code }))).toBe('none')
}

test('an owner recovery that lost its connection is completed by another run', async () => {
  await firstOwner(t)
  const files = openBootstrapFiles(t.stateDirectory, 'owner-recovery')
  await everyLoss({
    run: (core) => recoverOwner(core, files),
    path: files.path,
    stored: ['SERVER_OWNER_RECOVERY_RESULT_UNCERTAIN'],
    records: ['owner.recover'],
  })
  await expectUsable(files.path)
})

test('a bootstrap recovery that lost its connection is completed by another run', async () => {
  await t.identity.startup()
  const files = openBootstrapFiles(t.stateDirectory)
  await everyLoss({
    run: (core) => recoverBootstrap(core, files),
    path: files.path,
    stored: ['SERVER_BOOTSTRAP_RECOVERY_RESULT_UNCERTAIN'],
    records: ['bootstrap.recover'],
  })
  await expectUsable(files.path)
})

test('after a first start that lost its connection, the next start leaves one code', async () => {
  const files = openBootstrapFiles(t.stateDirectory)
  await everyLoss({
    prepare: async () => {
      await t.sql('delete from service_operator_invitations')
      rmSync(files.path, { force: true })
    },
    run: (core) => ensureBootstrap(core, files),
    path: files.path,
    // A loss at the commit is retried; after a later loss, the next start moves the file.
    stored: ['none', 'PLATFORM_UNAVAILABLE'],
    records: ['bootstrap.create'],
  })
  await expectUsable(files.path)
})

test('a start that renews an expired code and loses its connection does so once', async () => {
  const files = openBootstrapFiles(t.stateDirectory)
  await ensureBootstrap(t.identity, files)
  await everyLoss({
    prepare: async () => t.system.advance(86_400_000),
    run: (core) => ensureBootstrap(core, files),
    path: files.path,
    stored: ['none', 'PLATFORM_UNAVAILABLE'],
    records: ['bootstrap.create', 'bootstrap.expire'],
  })
  await expectUsable(files.path)
})

test('a start that loses its connection leaves a recovery code usable', async () => {
  await firstOwner(t)
  const files = openBootstrapFiles(t.stateDirectory, 'owner-recovery')
  await recoverOwner(t.identity, files)
  const reconcile = (core: IdentityCore) => reconcileRecoveryFile(core, files)
  for (const loss of await injector.lossesOf(reconcile)) {
    expect(await injector.inject(reconcile, loss), loss.where).toBe('PLATFORM_UNAVAILABLE')
    await expectOneCode(files.path)
  }
  await expectUsable(files.path)
})
