import { afterEach, beforeEach, expect, test } from 'vitest'
import { openTestProduct, REQUEST_ID, type TestProduct } from '../../../build/testing/products.ts'
import { listPendingAudit } from '../../storage/control/audit-outbox.ts'
import { closeProduct } from '../product.ts'
import { AuditOutbox, type ProductAudit } from './audit-outbox.ts'

let it: TestProduct
beforeEach(async () => {
  it = await openTestProduct()
})
afterEach(() => it.close())

function outbox(sink: (record: ProductAudit) => Promise<void>): AuditOutbox {
  const { system, log, root } = it
  return new AuditOutbox({ system, log: log.log, control: root.control, sink })
}

function append(to: AuditOutbox, subject: string): void {
  it.root.control.transaction((tx) =>
    to.append(tx, it.actor, { operation: 'product.test.run', subject, requestId: REQUEST_ID }),
  )
}

function pending(): number {
  return it.root.control.read((reader) => listPendingAudit(reader, 1000)).length
}

test('a record that rolls back with its change is never delivered', async () => {
  const delivered: ProductAudit[] = []
  const audit = outbox(async (record) => void delivered.push(record))
  expect(() =>
    it.root.control.transaction((tx) => {
      audit.append(tx, it.actor, {
        operation: 'product.test.run',
        subject: 'x',
        requestId: REQUEST_ID,
      })
      throw new RangeError('change failed')
    }),
  ).toThrow('change failed')
  audit.deliver()
  await audit.settled()
  expect(delivered).toEqual([])
})

test('records are delivered whole, in order, once', async () => {
  const delivered: ProductAudit[] = []
  const audit = outbox(async (record) => void delivered.push(record))
  for (let i = 0; i < 150; i++) append(audit, `s${i}`)
  audit.deliver()
  audit.deliver()
  await audit.settled()
  expect(delivered.map(({ subject }) => subject)).toEqual(
    Array.from({ length: 150 }, (_, i) => `s${i}`),
  )
  expect(delivered[0]).toEqual({
    auditId: expect.stringMatching(/^aud_/),
    operation: 'product.test.run',
    outcome: 'succeeded',
    actor: it.actor.operatorId,
    subject: 's0',
    atMicros: it.system.nowMicros(),
    requestId: REQUEST_ID,
    sessionId: it.actor.sessionId,
    operationId: null,
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
    await audit.settled()
    expect(pending(), `after ${turns} turns`).toBe(0)
  }
})

test('an outage of the trail keeps the records, and the next process delivers them', async () => {
  const audit = outbox(async () => {
    throw new RangeError('down')
  })
  append(audit, 'kept')
  audit.deliver()
  await audit.close()
  expect(pending()).toBe(1)
  expect(it.log.text()).toContain('product.audit_delayed')
  const { directory } = it
  await closeProduct(it.product)
  it = await openTestProduct({ directory })
  await it.product.audit.settled()
  expect(it.audited.map(({ subject }) => subject)).toEqual(['kept'])
  expect(pending()).toBe(0)
})
