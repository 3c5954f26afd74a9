/**
 * Ownership and validation of Product roots.
 *
 * @module-tag slow
 */
import { Database } from 'bun:sqlite'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freePort } from '../../testing/servers/ports.ts'
import { argv } from '../argv.ts'
import { createInstallation, type Installation, productEnvironment } from '../harness.ts'

let installation: Installation
beforeEach(async () => {
  installation = await createInstallation()
  const { productRoot, workspace } = installation
  const made = await installation.svc(argv`init --root ${productRoot} --workspace ${workspace}`)
  expect(made.status, made.stderr).toBe(0)
})
afterEach(() => installation.dispose())

test('one process owns a Product root, and a killed owner releases it', async () => {
  const settings = productEnvironment(installation)
  const owner = await installation.start(settings)
  // The addresses are opened first, so the second server needs its own.
  const elsewhere = {
    ...settings,
    SERVICE_MANAGEMENT_LISTEN: `127.0.0.1:${await freePort()}`,
    SERVICE_APPLICATION_LISTEN: '127.0.0.1:0',
  }
  await expect(installation.start(elsewhere)).rejects.toThrow('SERVER_PRODUCT_ROOT_LOCKED')
  owner.kill()
  await owner.ended
  const next = await installation.start(settings)
  expect(next.application).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
})

test('a directory that is no root, or whose keyring others can read, is not served', async () => {
  const settings = productEnvironment(installation)
  const elsewhere = { ...settings, SERVICE_PRODUCT_ROOT: installation.directory }
  await expect(installation.start(elsewhere)).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
  chmodSync(join(installation.productRoot, 'keyring.json'), 0o644)
  await expect(installation.start(settings)).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
})

test('a damaged descriptor stops the server and creates no new Environment', async () => {
  const settings = productEnvironment(installation)
  writeFileSync(join(installation.productRoot, 'service.json'), '{"version":1}\n')
  await expect(installation.start(settings)).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
})

test('documents that end too early are served once their loss is accepted', async () => {
  const settings = productEnvironment(installation)
  const first = await installation.start(settings)
  expect(await first.stop()).toBe(0)
  // The document store ends nine commits before the control database expects.
  const control = new Database(join(installation.productRoot, 'control.db'))
  control.run('update environment set documents_sequence = 9')
  control.close()
  await expect(installation.start(settings)).rejects.toThrow(
    /SERVER_DOCUMENTS_OLDER: .*they end at sequence 0, and 9 was durable/,
  )
  const wrong = installation.start(settings, argv`--accept-loss 9`)
  await expect(wrong).rejects.toThrow('SERVER_DOCUMENTS_OLDER')
  const accepting = await installation.start(settings, argv`--accept-loss 0`)
  await expect
    .poll(() => accepting.lines.join('\n'), { timeout: 60_000 })
    .toContain('"event":"product.documents.accept_loss"')
  expect(await accepting.stop()).toBe(0)
  const again = await installation.start(settings)
  expect(await again.stop()).toBe(0)
})
