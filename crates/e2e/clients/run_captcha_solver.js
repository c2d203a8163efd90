// @2captcha/captcha-solver, the official client of 2captcha for JavaScript: classic, JSON. It requests tokens by GET
// and everything else by POST with a JSON body. A reply that is not JSON is an error for it.
'use strict';

const { installed, notOffered, order, run } = require('./driver.js');

const constants = require(installed('@2captcha/captcha-solver/dist/structs/constants/constants.js'));
constants.supportedProviders.twoCaptcha.in = `${order.base}/in.php`;
constants.supportedProviders.twoCaptcha.res = `${order.base}/res.php`;
const { Solver } = require(installed('@2captcha/captcha-solver'));

const PAUSE_MS = 500;

function call(solver) {
    const { page: pageurl, siteKey } = order;
    switch (order.what) {
        case 'image':
            return solver.imageCaptcha({ body: order.image, numeric: 0, min_len: 4 });
        case 'text':
            return solver.text({ textcaptcha: order.question, lang: 'en' });
        case 'grid':
            return solver.grid({ body: order.image, textinstructions: 'traffic lights', rows: 3, cols: 3, recaptcha: 1 });
        case 'recaptcha_v2':
            return solver.recaptcha({ pageurl, googlekey: siteKey });
        case 'recaptcha_v2_enterprise':
            return solver.recaptcha({ pageurl, googlekey: siteKey, enterprise: 1 });
        case 'recaptcha_v3':
            return solver.recaptcha({ pageurl, googlekey: siteKey, version: 'v3', action: 'login', min_score: 0.3 });
        case 'hcaptcha':
            return solver.hcaptcha({ pageurl, sitekey: siteKey });
        case 'turnstile':
            return solver.cloudflareTurnstile({ pageurl, sitekey: siteKey });
        case 'geetest':
            return solver.geetest({ pageurl, gt: order.gt, challenge: order.challenge });
        case 'geetest_v4':
            return solver.geetestV4({ pageurl, captcha_id: order.gt });
        case 'funcaptcha':
            return solver.funCaptcha({ pageurl, publickey: siteKey });
        case 'friendly_captcha':
            return solver.friendlyCaptcha({ pageurl, sitekey: siteKey });
        default:
            throw notOffered();
    }
}

run(async () => {
    const solver = new Solver(order.key, PAUSE_MS);
    if (order.what === 'balance') return { answer: await solver.balance() };
    const { data, id } = await call(solver);
    if (order.report) {
        const reply = order.report === 'good' ? await solver.goodReport(id) : await solver.badReport(id);
        if (reply !== 'OK_REPORT_RECORDED') throw new Error(`the report was answered ${reply}`);
    }
    return { answer: data, id };
});
