// 2captcha 3.0.7, the older client for JavaScript that many still use: classic, JSON. It sends an image as JSON
// without that content type, and everything else in the query.
'use strict';

const { installed, notOffered, order, run } = require('./driver.js');
const { Solver } = require(installed('2captcha'));

const PAUSE_MS = 500;

// Its addresses are fixed, as properties that a subclass can override.
class Pointed extends Solver {
    get in() {
        return `${order.base}/in.php`;
    }

    get res() {
        return `${order.base}/res.php`;
    }
}

function call(solver) {
    switch (order.what) {
        case 'image':
            return solver.imageCaptcha(order.image);
        case 'recaptcha_v2':
            return solver.recaptcha(order.siteKey, order.page);
        case 'recaptcha_v2_enterprise':
            return solver.recaptcha(order.siteKey, order.page, { enterprise: 1 });
        case 'recaptcha_v3':
            return solver.recaptcha(order.siteKey, order.page, { version: 'v3', action: 'login', min_score: 0.3 });
        case 'hcaptcha':
            return solver.hcaptcha(order.siteKey, order.page);
        case 'turnstile':
            return solver.turnstile(order.siteKey, order.page);
        case 'geetest':
            return solver.geetest(order.gt, order.challenge, order.page);
        case 'funcaptcha':
            return solver.funCaptcha(order.siteKey, order.page);
        default:
            throw notOffered();
    }
}

run(async () => {
    const solver = new Pointed(order.key, PAUSE_MS);
    if (order.what === 'balance') return { answer: await solver.balance() };
    const { data, id } = await call(solver);
    if (order.report === 'good') await solver.goodReport(id);
    if (order.report === 'bad') await solver.report(id);
    return { answer: data, id };
});
