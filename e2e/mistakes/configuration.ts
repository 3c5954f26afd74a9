/** Changes of the configuration and of credentials that are rejected. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const CONFIGURATION: readonly Situation[] = [
  {
    situation: 'a variable is set as a secret',
    run: argv`svc config set GREETING --secret --root {root}`,
    input: 's3cret',
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  kind: the kind that the name has; delete it to change that',
      '  Run `svc config unset GREETING`, then set it as a secret again.',
      '  request {request}',
    ],
  },
  {
    situation: 'the name to delete is not set',
    run: argv`svc config unset UNKNOWN --root {root}`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  name UNKNOWN: a name that is set',
      '  Run `svc config list` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the configuration has changed',
    run: argv`svc config set GREETING hi --expected 0 --root {root}`,
    exit: 4,
    message: [
      'svc: PRODUCT_CAS_CONFLICT: The current state is not the one that the request ' + 'expects.',
      '  Read the revision with `svc config history`, then repeat the change from there.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Environment has changed',
    run: argv`svc environments update --name Shop --expected 9 --root {root}`,
    exit: 4,
    message: [
      'svc: PRODUCT_CAS_CONFLICT: The current state is not the one that the request ' + 'expects.',
      '  Read the revision with `svc environments get`, then repeat the change from ' + 'there.',
      '  request {request}',
    ],
  },
  {
    situation: 'the Environment to restore is active',
    run: argv`svc environments restore --root {root}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  environment {environmentId}: an Environment that is not active yet; this one is ' +
        'active',
      '  Read the state with `svc status`, then decide whether to repeat the change.',
      '  request {request}',
    ],
  },
  {
    situation: 'the client of a new key is unknown',
    run: argv`svc credentials create --root {root} --client {unknownClient} --name ci`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  clientId {unknownClient}: an Application Client of this Environment',
      '  Run `svc clients list` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'a new key has a scope that its client does not have',
    run: argv`svc credentials create --root {root} --client {client} --name ci --scopes realtime`,
    exit: 8,
    message: [
      'svc: PRODUCT_INVALID: The Product request is not valid.',
      '  scopes: scopes of action, mutation, query',
      '  Correct the request and send it again.',
      '  request {request}',
    ],
  },
  {
    situation: 'the key to delete is active',
    run: argv`svc credentials delete --root {root} --client {client} --credential {reader}`,
    exit: 4,
    message: [
      'svc: PRODUCT_STATE_CONFLICT: The current state of the resource does not allow ' +
        'this change.',
      '  credentialId {reader}: a credential that is revoked; this one is active',
      '  Revoke it with `svc credentials revoke`, then delete it.',
      '  request {request}',
    ],
  },
  {
    situation: 'the key to show again is secret',
    run: argv`svc credentials reveal --root {root} --client {client} --credential {reader}`,
    exit: 8,
    message: [
      'svc: PRODUCT_INVALID: The Product request is not valid.',
      '  credential: of a public client; other keys are shown once',
      '  Replace a lost key with `svc credentials rotate`.',
      '  request {request}',
    ],
  },
]
