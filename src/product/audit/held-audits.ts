/**
 * Audit records of changes in the document store. A record is stored before the change and held
 * until the change is known to be committed: then it is delivered; otherwise it is removed. After a
 * crash the next server looks each change up by its operation ID.
 */
import type { Actor } from '../../identity/actor.ts'
import {
  deletePendingAudit,
  listHeldAudit,
  releaseHeldAudit,
} from '../../storage/control/audit-outbox.ts'
import type { ControlDatabase } from '../../storage/control/database.ts'
import type { System } from '../../system/system.ts'
import type { AuditId, OperationId } from '../../value/ids.ts'
import { type AuditedChange, type AuditOutbox, appendAudit } from './audit-outbox.ts'

interface HeldAuditsOptions {
  readonly system: System
  readonly control: ControlDatabase
  readonly audit: Pick<AuditOutbox, 'deliver'>
}

export interface HeldChange<T> {
  readonly perform: () => Promise<T>
  /** Returns whether a failure of `perform` means that nothing was committed. */
  readonly isUndone: (error: unknown) => boolean
}

export class HeldAudits {
  readonly #options: HeldAuditsOptions

  constructor(options: HeldAuditsOptions) {
    this.#options = options
  }

  /** Performs the change with its record. Rejects as `perform` does. */
  async hold<T>(
    actor: Actor,
    change: AuditedChange & { readonly operationId: OperationId },
    { perform, isUndone }: HeldChange<T>,
  ): Promise<T> {
    const { system, control } = this.#options
    const auditId = control.transaction((tx) => {
      // The outcome of an earlier attempt was unknown. This attempt replaces its record.
      for (const held of this.#heldFor(change.operationId)) deletePendingAudit(tx, held)
      return appendAudit(tx, system, actor, change, 'held')
    })
    try {
      const result = await perform()
      this.#release(auditId)
      return result
    } catch (error) {
      // If the outcome is unknown, the record stays held until a repeat or the next server finds
      // it.
      if (isUndone(error)) control.transaction((tx) => deletePendingAudit(tx, auditId))
      throw error
    }
  }

  /**
   * Delivers the records of an earlier server whose change was committed, and deletes the others.
   * Rejects if a change cannot be looked up.
   */
  async resolve(isCommitted: (operationId: OperationId) => Promise<boolean>): Promise<void> {
    const { control } = this.#options
    for (const { auditId, record } of control.read(listHeldAudit)) {
      if (await isCommitted(readOperationId(record))) this.#release(auditId)
      else control.transaction((tx) => deletePendingAudit(tx, auditId))
    }
  }

  /** Delivers the held record of a change that a repeat found to be committed. */
  deliverHeld(operationId: OperationId): void {
    for (const auditId of this.#heldFor(operationId)) this.#release(auditId)
  }

  #heldFor(operationId: OperationId): AuditId[] {
    return this.#options.control
      .read(listHeldAudit)
      .filter(({ record }) => readOperationId(record) === operationId)
      .map(({ auditId }) => auditId)
  }

  #release(auditId: AuditId): void {
    const { control, audit } = this.#options
    control.transaction((tx) => releaseHeldAudit(tx, auditId))
    audit.deliver()
  }
}

function readOperationId(record: string): OperationId {
  return (JSON.parse(record) as { readonly operationId: OperationId }).operationId
}
