/** Logins, sessions, invitations and links that fail. */
import { argv } from '../argv.ts'
import type { Situation } from './situations.ts'

export const OPERATORS: readonly Situation[] = [
  {
    situation: 'the code of an invitation is wrong',
    as: 'nobody',
    run: argv`svc login --url {management} --code-env CODE`,
    environment: { CODE: '{wrongCode}' },
    exit: 3,
    message: [
      'svc: PLATFORM_AUTHENTICATION_FAILED: Authentication failed. The invitation code ' +
        'is wrong, used or expired.',
      '  Ask an owner for a new invitation (`svc invite`), then log in with its code.',
      '  request {request}',
    ],
  },
  {
    situation: 'the code of an invitation was used before',
    as: 'nobody',
    run: argv`svc login --url {management} --code-env CODE`,
    environment: { CODE: '{code}' },
    exit: 3,
    message: [
      'svc: PLATFORM_AUTHENTICATION_FAILED: Authentication failed. The invitation code ' +
        'is wrong, used or expired.',
      '  Ask an owner for a new invitation (`svc invite`), then log in with its code.',
      '  request {request}',
    ],
  },
  {
    situation: 'the code of an invitation has expired',
    as: 'nobody',
    run: argv`svc login --url {management} --code-env CODE`,
    environment: { CODE: '{expiredCode}' },
    exit: 3,
    message: [
      'svc: PLATFORM_AUTHENTICATION_FAILED: Authentication failed. The invitation code ' +
        'is wrong, used or expired.',
      '  Ask an owner for a new invitation (`svc invite`), then log in with its code.',
      '  request {request}',
    ],
  },
  {
    situation: 'the server does not accept logins in a browser',
    as: 'nobody',
    run: argv`svc login --url {management} --browser`,
    exit: 2,
    message: [
      'svc: CLIENT_USAGE: {management} does not accept a login in the browser; it ' +
        'accepts invitation codes.',
      '  See `svc login --help`.',
    ],
  },
  {
    situation: 'the server is not running',
    as: 'nobody',
    run: argv`svc login --url http://{closed} --code-env CODE`,
    environment: { CODE: '{wrongCode}' },
    exit: 5,
    message: [
      'svc: CLIENT_SERVER_UNREACHABLE: The server did not respond. http://{closed}: ' +
        'ECONNREFUSED.',
      '  Check the address and that the server is running, then try again.',
    ],
  },
  {
    situation: 'the address belongs to another program',
    as: 'nobody',
    run: argv`svc login --url {page} --code-env CODE`,
    environment: { CODE: '{wrongCode}' },
    exit: 1,
    message: [
      'svc: CLIENT_RESPONSE_INVALID: The server sent a response that this client does ' +
        'not understand. HTTP 200 without a JSON body.',
      '  Check that the address is the Management origin and that client and server have ' +
        'the same version.',
    ],
  },
  {
    situation: 'nobody is logged in',
    as: 'nobody',
    run: argv`svc status --root {root}`,
    exit: 3,
    message: [
      'svc: CLIENT_NOT_LOGGED_IN: There is no stored session.',
      '  Log in with `svc login --url URL --code-env VAR`.',
    ],
  },
  {
    situation: 'the credentials file is damaged',
    as: 'damaged',
    run: argv`svc status --root {root}`,
    exit: 6,
    message: [
      'svc: CLIENT_CREDENTIALS_INVALID: The credentials file was not written by this ' +
        'client, or it is damaged. {home}/credentials-v1.json: $ at character 1: a key.',
      '  Move the file away and log in again.',
    ],
  },
  {
    situation: 'the directory is not a root',
    run: argv`svc status`,
    exit: 8,
    message: [
      'svc: CLIENT_ROOT_INVALID: The directory is not a root that this command can use. ' +
        '{empty} has no service.json.',
      '  Name the root with --root DIR. Create one with `svc init`, or connect one with ' +
        '`svc link`.',
    ],
  },
  {
    situation: 'the root is not linked',
    run: argv`svc status --root {unlinked}`,
    exit: 8,
    message: [
      'svc: CLIENT_ROOT_INVALID: The directory is not a root that this command can use. ' +
        '{unlinked} is not linked to a server.',
      '  Run `svc link --root {unlinked}`, or serve the root on this machine with `svc dev`.',
    ],
  },
  {
    situation: 'the directory is linked to an Environment that the server does not have',
    run: argv`
      svc link --root {missing} --project-id {otherProject}
      --environment-id {otherEnvironment}
    `,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist.',
      '  environment {otherEnvironment}: the Environment that this server serves',
      '  Run `svc resources` to see what exists.',
      '  request {request}',
    ],
  },
  {
    situation: 'the root belongs to another Environment',
    run: argv`
      svc link --root {root} --project-id {otherProject} --environment-id {otherEnvironment}
    `,
    exit: 8,
    message: [
      'svc: CLIENT_ROOT_INVALID: The directory is not a root that this command can use. ' +
        '{root} belongs to {projectId} and {environmentId}.',
      '  Link another directory, or leave the identifiers out.',
    ],
  },
  {
    situation: 'the operator may link no Environment',
    as: 'stranger',
    run: argv`svc link --root {missing}`,
    exit: 7,
    message: [
      'svc: PRODUCT_NOT_FOUND: The Product resource does not exist. The grants of this ' +
        'operator contain no Environment of this server.',
      '  Ask an owner for an invitation to the Environment.',
    ],
  },
  {
    situation: 'the address of a link is not that of the session',
    run: argv`svc link --root {missing} --url https://manage.example.com`,
    exit: 4,
    message: [
      'svc: CLIENT_ORIGIN_MISMATCH: The session belongs to another Management origin. ' +
        '--url names https://manage.example.com; the session belongs to {management}.',
      '  Log in to that origin, or use a root that is linked to the origin of the ' + 'session.',
    ],
  },
  {
    situation: 'an observer issues an invitation',
    as: 'observer',
    run: argv`svc invite --operator-name ana --role observer --scope environment --root {root}`,
    exit: 3,
    message: [
      'operation {operation}',
      'svc: PLATFORM_ACCESS_DENIED: The operator does not have the required capability ' +
        'at this scope. The operator is observer, the scope {environmentId}.',
      '  capability: operators:manage at any scope',
      '  Ask an owner to grant the capability at this exact scope.',
      '  request {request}',
    ],
  },
  {
    situation: 'an observer promotes a Release',
    as: 'observer',
    run: argv`svc promote --root {root} --channel production --release {release}`,
    exit: 3,
    message: [
      'svc: PLATFORM_ACCESS_DENIED: The operator does not have the required capability ' +
        'at this scope. The operator is observer, the scope {environmentId}.',
      '  capability: channels:promote at the Environment',
      '  Ask an owner to grant the capability at this exact scope.',
      '  request {request}',
    ],
  },
  {
    situation: 'an observer reads the audit',
    as: 'observer',
    run: argv`svc audit`,
    exit: 3,
    message: [
      'svc: PLATFORM_ACCESS_DENIED: The operator does not have the required capability ' +
        'at this scope. The operator is observer, the scope installation.',
      '  capability: operators:manage at any scope',
      '  Ask an owner to grant the capability at this exact scope.',
      '  request {request}',
    ],
  },
  {
    situation: 'an operator of another Project reads the status',
    as: 'stranger',
    run: argv`svc status --root {root}`,
    exit: 3,
    message: [
      'svc: PLATFORM_ACCESS_DENIED: The operator does not have the required capability ' +
        'at this scope. The operator is operator, the scope {environmentId}.',
      '  capability: releases:read at the Environment',
      '  Ask an owner to grant the capability at this exact scope.',
      '  request {request}',
    ],
  },
  {
    situation: 'the file of a code exists already',
    run: argv`
      svc invite --operator-name ana --role observer --scope installation
      --code-out {secondPackage}
    `,
    exit: 1,
    message: [
      'operation {operation}',
      'svc: CLIENT_FILE_FAILED: A local file could not be read or written. ' +
        '{secondPackage} exists already, and svc does not overwrite it.',
      '  Name another file.',
    ],
  },
  {
    situation: 'the invitation to revoke was used',
    run: argv`svc invitations revoke {usedInvitation}`,
    exit: 4,
    message: [
      'svc: PLATFORM_CONFLICT: The request conflicts with the current state. The ' +
        'invitation was used.',
      '  Revoke the session of the new operator with `svc sessions revoke` instead.',
      '  request {request}',
    ],
  },
  {
    situation: 'the operation of an invitation is unknown',
    run: argv`svc invitations show {unknownOperation}`,
    exit: 7,
    message: [
      'svc: PLATFORM_NOT_FOUND: The resource does not exist. No invitation was issued ' +
        'under this Operation ID.',
      '  Check the identifier, or run `svc invite` with it.',
      '  request {request}',
    ],
  },
]
