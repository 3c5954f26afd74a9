/** Who may own a Product root, and what makes a directory one. */
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Installation, installation, productEnvironment } from './harness.ts'

let it: Installation
beforeEach(async () => {
  it = await installation()
  const made = await it.svc(['init', '--root', it.productRoot, '--workspace', it.workspace])
  expect(made.status, made.stderr).toBe(0)
})
afterEach(() => it.dispose())

test('one process owns a Product root, and a killed owner gives it up', async () => {
  const owner = await it.start(productEnvironment(it))
  await expect(it.start(productEnvironment(it))).rejects.toThrow('SERVER_PRODUCT_ROOT_LOCKED')
  owner.kill()
  await owner.ended
  const next = await it.start(productEnvironment(it))
  expect(next.application).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
})

test('a directory that is no root, or whose keyring others can read, is not served', async () => {
  const elsewhere = { ...productEnvironment(it), SERVICE_PRODUCT_ROOT: it.directory }
  await expect(it.start(elsewhere)).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
  chmodSync(join(it.productRoot, 'keyring.json'), 0o644)
  await expect(it.start(productEnvironment(it))).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
})

test('a damaged descriptor stops the server instead of making a new Environment', async () => {
  writeFileSync(join(it.productRoot, 'service.json'), '{"version":1}\n')
  await expect(it.start(productEnvironment(it))).rejects.toThrow('SERVER_PRODUCT_ROOT_INVALID')
})
