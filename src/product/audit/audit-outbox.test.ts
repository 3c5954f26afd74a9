import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../testing/products.ts'
import { listPendingAudit } from '../../storage/control/audit-outbox.ts'
import { closeProduct } from '../product.ts'
import { AuditOutbox, type ProductAudit } from './audit-outbox.ts'

let harness: TestProduct
beforeEach(async () => {
  harness = await openTestProduct()
})
afterEach(() => harness.close())

function outbox(sink: (record: ProductAudit) => Promise<void>): AuditOutbox {
  const { system, log, root } = harness
  return new AuditOutbox({ system, log: log.log, control: root.control, sink })
}

function append(audit: AuditOutbox, subject: string): void {
  harness.root.control.transaction((tx) =>
    audit.append(tx, harness.actor, {
      operation: 'product.test.run',
      subject,
      requestId: REQUEST_ID,
    }),
  )
}

function pending(): number {
  return harness.root.control.read((reader) => listPendingAudit(reader, 1000)).length
}

test('a record that rolls back with its change is never delivered', async () => {
  const delivered: ProductAudit[] = []
  const audit = outbox(async (record) => void delivered.push(record))
  expect(() =>
    harness.root.control.transaction((tx) => {
      audit.append(tx, harness.actor, {
        operation: 'product.test.run',
        subject: 'x',
        requestId: REQUEST_ID,
      })
      throw new RangeError('change failed')
    }),
  ).toThrow('change failed')
  audit.deliver()
  await audit.whenIdle()
  expect(delivered).toEqual([])
})

test('records are delivered complete, in order and once', async () => {
  const delivered: ProductAudit[] = []
  const audit = outbox(async (record) => void delivered.push(record))
  for (let i = 0; i < 150; i++) append(audit, `s${i}`)
  audit.deliver()
  audit.deliver()
  await audit.whenIdle()
  expect(delivered.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 150 }, (_, i) => `s${i}`),
  )
  expect(delivered[0]).toEqual({
    auditId: expect.stringMatching(/^aud_/),
    operation: 'product.test.run',
    outcome: 'succeeded',
    actor: harness.actor.operatorId,
    subject: 's0',
    atMicros: harness.system.nowMicros(),
    requestId: REQUEST_ID,
    sessionId: harness.actor.sessionId,
    operationId: null,
    credentialId: null,
    purpose: null,
  })
  expect(pending()).toBe(0)
})

test('a record that is committed while a delivery ends is delivered too', async () => {
  for (let turns = 0; turns < 30; turns++) {
    const audit = outbox(async () => undefined)
    append(audit, 'first')
    audit.deliver()
    for (let turn = 0; turn < turns; turn++) await null
    append(audit, 'second')
    audit.deliver()
    await audit.whenIdle()
    expect(pending(), `after ${turns} turns`).toBe(0)
  }
})

test('records that an outage of the trail holds up are delivered by the next process', async () => {
  const audit = outbox(async () => {
    throw new RangeError('down')
  })
  append(audit, 'kept')
  audit.deliver()
  await audit.close()
  expect(pending()).toBe(1)
  expect(harness.log.text()).toContain('product.audit_delayed')
  const { directory } = harness
  await closeProduct(harness.product)
  harness = await openTestProduct({ directory })
  await harness.product.audit.whenIdle()
  expect(harness.audited.map(({ subject }) => subject)).toEqual(['kept'])
  expect(pending()).toBe(0)
})
