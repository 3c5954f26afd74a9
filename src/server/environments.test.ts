/**
 * @module-tag slow
 */
import { rmSync } from 'node:fs'
import { afterEach, expect, test } from 'vitest'
import { openTestProduct, publishRelease, type TestProduct } from '../../testing/products.ts'
import { closeProduct } from '../product/product.ts'
import { realSystem } from '../system/system.ts'
import { memoryLog } from '../telemetry/log.ts'
import { Metrics } from '../telemetry/metrics/metrics.ts'
import { openEnvironment } from './environments.ts'
import { ShutdownStack } from './shutdown-stack.ts'

let fixture: TestProduct

afterEach(() => rmSync(fixture.directory, { recursive: true, force: true }))

test('an Environment with a Release and without its documents is not opened', async () => {
  fixture = await openTestProduct()
  await publishRelease(fixture, { source: 'a' })
  await closeProduct(fixture.product)
  const system = realSystem()
  const { log } = memoryLog()
  const closing = new ShutdownStack(log)
  const opening = openEnvironment({
    // Only this much of the Release is read before the documents are opened.
    configuration: {
      product: null,
      sandbox: 'preferred' as const,
      memory: { targetMib: 1_024 },
      logs: {
        segmentBytesMax: 2 ** 20,
        segmentSecondsMax: 60,
        retentionDays: 30,
        archiveDays: 365,
      },
    },
    rootPath: fixture.directory,
    auditSink: async () => undefined,
    system,
    log,
    metrics: new Metrics(system),
    closing,
  })
  await expect(opening).rejects.toMatchObject({
    code: 'SERVER_PRODUCT_ROOT_INVALID',
    detail: expect.stringContaining('documents.db'),
  })
  await closing.close()
})
